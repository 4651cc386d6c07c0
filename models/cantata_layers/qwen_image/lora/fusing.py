"""Adds LoRA files to a denoiser's weights while these are loaded."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_image.config.transformer import TransformerConfig
from cantata_layers.qwen_image.lora.files import LayerChange, read_lora
from cantata_layers.qwen_image.lora.folder import LoraFile

WEIGHT = ".weight"
TOP_LAYERS = (
    "img_in",
    "txt_in",
    "time_text_embed.timestep_embedder.linear_1",
    "time_text_embed.timestep_embedder.linear_2",
    "norm_out.linear",
    "proj_out",
)
BLOCK_LAYERS = (
    "img_mod.1",
    "txt_mod.1",
    *(f"attn.to_{name}" for name in ("q", "k", "v", "out.0", "add_out")),
    *(f"attn.add_{name}_proj" for name in ("q", "k", "v")),
    *(f"{side}_mlp.net.{layer}" for side in ("img", "txt") for layer in ("0.proj", "2")),
)


class Fusion:
    """The changes of several files.

    Args:
        files: added to the weights one after the other.
        config: of the denoiser.

    Raises:
        ConfigError: a file cannot be read, or is not for this model.
    """

    def __init__(self, files: Sequence[LoraFile], config: TransformerConfig) -> None:
        layers = layer_names(config)
        self._changes = [(file, read_lora(file.path, layers)) for file in files]

    def fused(self, name: str, weight: torch.Tensor, device: torch.device) -> torch.Tensor:
        """A published tensor with all changes; the same tensor where there are none.

        Raises:
            ConfigError: a change has another shape.
        """
        layer = name.removesuffix(WEIGHT)
        for file, changes in self._changes:
            if name.endswith(WEIGHT) and layer in changes:
                weight = _changed(file, name, weight, changes.pop(layer), device)
        return weight

    def check_complete(self) -> None:
        """Check that every change found its weight.

        Raises:
            ConfigError: the checkpoint lacks a layer.
        """
        for file, changes in self._changes:
            if changes:
                raise ConfigError(
                    f"{file.path}: the checkpoint has no {sorted(changes)[0]}{WEIGHT}"
                )


def layer_names(config: TransformerConfig) -> frozenset[str]:
    """Published names of the layers with a matrix."""
    blocks = (f"transformer_blocks.{number}" for number in range(config.layers))
    return frozenset(TOP_LAYERS) | {f"{block}.{name}" for block in blocks for name in BLOCK_LAYERS}


def _changed(
    file: LoraFile, name: str, weight: torch.Tensor, change: LayerChange, device: torch.device
) -> torch.Tensor:
    output = (change.up.shape[0], change.down.shape[1])
    if weight.shape != output:
        raise ConfigError(f"{file.path}: changes {list(output)} of {name} {list(weight.shape)}")
    up, down = (part.to(device, torch.float32) for part in (change.up, change.down))
    return weight.to(device, torch.float32) + file.strength * change.scale * (up @ down)
