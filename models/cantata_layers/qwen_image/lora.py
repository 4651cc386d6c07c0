"""LoRA files: small changes of a denoiser's weights, fused into them when it is loaded.

Published files spell names of tensors differently: a layer of the denoiser, perhaps with a prefix,
perhaps with underscores for dots, and the role of the tensor.

Letters: R rank, I inputs, O outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_image.config import TransformerConfig
from cantata_layers.qwen_image.defaults import LoraFile
from cantata_layers.qwen_image.transformer.network import weight_shapes

ROLES = re.compile(
    r"^(?P<layer>.+?)\."
    r"(?:lora_(?P<role>A|B|down|up)(?:\.default)?\.weight|(?P<alpha>alpha))$"
)
DOWN = ("A", "down")
PREFIXES = ("base_model.model.", "transformer.", "diffusion_model.", "model.diffusion_model.")
FLAT_PREFIXES = ("lora_unet_", "lora_transformer_", "lycoris_")
"""In front of names with underscores for dots."""
METADATA = "lora_adapter_metadata"


@dataclass(frozen=True, slots=True)
class LayerChange:
    """A change of one layer's weight: `scale` * up @ down is added to it."""

    down: torch.Tensor
    """[R, I]"""
    up: torch.Tensor
    """[O, R]"""
    scale: float


def read_lora(path: Path, layers: Collection[str]) -> dict[str, LayerChange]:
    """Read a file's changes by layer.

    Args:
        path: a safetensors file.
        layers: names of the layers that may change.

    Raises:
        ConfigError: the file cannot be read, is of another kind, or is for other layers.
    """
    tensors, metadata = _read_tensors(path)
    flat = {layer.replace(".", "_"): layer for layer in layers}
    found: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        match = ROLES.match(name)
        layer = None if match is None else _find_layer(match["layer"], layers, flat)
        if match is None or layer is None:
            raise ConfigError(
                f"{path}: {name!r} is no LoRA tensor of a layer of this model; valid: "
                "lora_A and lora_B, or lora_down, lora_up and alpha"
            )
        role = "alpha" if match["alpha"] else "down" if match["role"] in DOWN else "up"
        found.setdefault(layer, {})[role] = tensor
    if not found:
        raise ConfigError(f"{path}: holds no tensors")
    return {layer: _change(path, layer, parts, metadata) for layer, parts in found.items()}


def _read_tensors(path: Path) -> tuple[dict[str, torch.Tensor], Mapping[str, Any]]:
    """All tensors, and what the file says of ranks and scales."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = (file.metadata() or {}).get(METADATA)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        fields = json.loads(metadata) if metadata else {}
    except (OSError, SafetensorError, ValueError) as error:
        raise ConfigError(f"{path}: not a readable safetensors file: {error}") from error
    return tensors, {str(k).removeprefix("transformer."): v for k, v in fields.items()}


def _find_layer(name: str, layers: Collection[str], flat: Mapping[str, str]) -> str | None:
    for prefix in ("", *PREFIXES):
        if name.startswith(prefix) and name.removeprefix(prefix) in layers:
            return name.removeprefix(prefix)
    for prefix in FLAT_PREFIXES:
        if name.startswith(prefix) and name.removeprefix(prefix) in flat:
            return flat[name.removeprefix(prefix)]
    return None


def _change(
    path: Path, layer: str, parts: Mapping[str, torch.Tensor], metadata: Mapping[str, Any]
) -> LayerChange:
    down, up = parts.get("down"), parts.get("up")
    if down is None or up is None:
        raise ConfigError(f"{path}: {layer} has only {sorted(parts)}; valid: down and up together")
    if down.ndim != 2 or up.ndim != 2 or len(down) != up.shape[1]:
        raise ConfigError(
            f"{path}: {layer} has matrices {list(down.shape)} and {list(up.shape)}; valid: "
            "[rank, inputs] and [outputs, rank]"
        )
    rank = len(down)
    alpha = float(parts["alpha"]) if "alpha" in parts else _read_alpha(layer, rank, metadata)
    by = rank**0.5 if metadata.get("use_rslora") else rank
    return LayerChange(down, up, alpha / by)


def _read_alpha(layer: str, rank: int, metadata: Mapping[str, Any]) -> float:
    """The alpha in the file's metadata; if it has none, the rank."""
    by_layer = metadata.get("alpha_pattern") or {}
    return float(by_layer.get(layer, metadata.get("lora_alpha", rank)))


WEIGHT = ".weight"


class Fusion:
    """The changes of several files.

    Args:
        files: added to the weights one after the other.

    Raises:
        ConfigError: a file cannot be read, or is not for this model.
    """

    def __init__(self, files: Sequence[LoraFile], config: TransformerConfig) -> None:
        layers = layer_names(config)
        self._changes = [(file, read_lora(file.path, layers)) for file in files]

    def fused(self, name: str, weight: torch.Tensor, device: torch.device) -> torch.Tensor:
        """A published tensor with all changes; the same tensor where there are none. Raises
        ConfigError: a change has another shape."""
        layer = name.removesuffix(WEIGHT)
        for file, changes in self._changes:
            if name.endswith(WEIGHT) and layer in changes:
                weight = _add_change(file, name, weight, changes.pop(layer), device)
        return weight

    def check_complete(self) -> None:
        """Check that every change found its weight. Raises ConfigError: the checkpoint lacks a
        layer."""
        for file, changes in self._changes:
            if changes:
                raise ConfigError(
                    f"{file.path}: the checkpoint has no {sorted(changes)[0]}{WEIGHT}"
                )


def layer_names(config: TransformerConfig) -> frozenset[str]:
    """Published names of the layers with a matrix."""
    shapes = weight_shapes(config).items()
    return frozenset(name.removesuffix(WEIGHT) for name, shape in shapes if len(shape) == 2)


def _add_change(
    file: LoraFile, name: str, weight: torch.Tensor, change: LayerChange, device: torch.device
) -> torch.Tensor:
    output = (change.up.shape[0], change.down.shape[1])
    if weight.shape != output:
        raise ConfigError(f"{file.path}: changes {list(output)} of {name} {list(weight.shape)}")
    up, down = (part.to(device, torch.float32) for part in (change.up, change.down))
    return weight.to(device, torch.float32) + file.strength * change.scale * (up @ down)
