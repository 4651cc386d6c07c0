"""Loads the denoiser's published weights, where there is room for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from cantata_layers.qwen_image.config import TRANSFORMER, WEIGHTS, TransformerConfig
from cantata_layers.qwen_image.lora import Fusion
from cantata_layers.qwen_image.transformer.modulation import Modulations
from cantata_layers.qwen_image.transformer.network import (
    MODULATIONS,
    NAMES,
    DenoiserWeights,
    VelocityPredictor,
)

BLOCK = 36
"""Squares of the width in a block's weights, as the next."""
BLOCK_MODULATION = 12
ROOM = 1.2
"""Memory for weights and what is computed with them, over the weights alone."""


@dataclass(frozen=True, slots=True)
class DenoiserPlacement:
    device: torch.device
    dtype: torch.dtype
    modulation_home: torch.device
    """Where the weights of modulations lie; if not on `device`, each is copied there when it is
    used, once for each new share of noise."""


def place(config: TransformerConfig, device: torch.device, dtype: torch.dtype) -> DenoiserPlacement:
    """Keep the weights of modulations off a GPU that has no room for everything."""
    if device.type != "cuda":
        return DenoiserPlacement(device, dtype, device)
    free, _ = torch.cuda.mem_get_info(device)
    away = weight_bytes(config, dtype) * ROOM > free
    return DenoiserPlacement(device, dtype, torch.device("cpu") if away else device)


def weight_bytes(config: TransformerConfig, dtype: torch.dtype, *, modulation: bool = True) -> int:
    """About how large the weights are, with or without those of the modulations."""
    squares = BLOCK if modulation else BLOCK - BLOCK_MODULATION
    return squares * config.width**2 * config.layers * dtype.itemsize


def load_denoiser(
    checkpoint: Path,
    config: TransformerConfig,
    placement: DenoiserPlacement,
    fusion: Fusion | None = None,
) -> VelocityPredictor:
    """Return a checkpoint's denoiser.

    Args:
        fusion: what LoRA files change in the weights.

    Raises:
        ConfigError: weights are missing or of another shape, or a LoRA does not fit.
    """
    with torch.device("meta"):
        weights = DenoiserWeights(config)
    folder = checkpoint / TRANSFORMER
    NAMES.fill(weights, _iterate_placed(folder, placement, fusion), folder)
    return VelocityPredictor(
        config, weights.layers, Modulations(weights.modulations, placement.device)
    )


def _iterate_placed(
    folder: Path, placement: DenoiserPlacement, fusion: Fusion | None
) -> Iterator[tuple[str, torch.Tensor]]:
    for name, tensor in NAMES.read(folder, WEIGHTS):
        fused = tensor if fusion is None else fusion.fused(name, tensor, placement.device)
        is_modulation = str(NAMES.own(name)).startswith(MODULATIONS)
        home = placement.modulation_home if is_modulation else placement.device
        yield name, fused.to(home, placement.dtype)
    if fusion is not None:
        fusion.check_complete()
