"""Adds LoRA files to a denoiser's weights while these are loaded."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_image.config.transformer import TransformerConfig
from cantata_layers.qwen_image.lora.files import LayerChange, read_lora
from cantata_layers.qwen_image.lora.folder import LoraFile
from cantata_layers.qwen_image.transformer.network import weight_shapes

WEIGHT = ".weight"


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
    shapes = weight_shapes(config).items()
    return frozenset(name.removesuffix(WEIGHT) for name, shape in shapes if len(shape) == 2)


def _changed(
    file: LoraFile, name: str, weight: torch.Tensor, change: LayerChange, device: torch.device
) -> torch.Tensor:
    output = (change.up.shape[0], change.down.shape[1])
    if weight.shape != output:
        raise ConfigError(f"{file.path}: changes {list(output)} of {name} {list(weight.shape)}")
    up, down = (part.to(device, torch.float32) for part in (change.up, change.down))
    return weight.to(device, torch.float32) + file.strength * change.scale * (up @ down)
