"""Loads the denoiser's published weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from cantata_layers.qwen_image.config.pipeline import TRANSFORMER, WEIGHTS
from cantata_layers.qwen_image.config.transformer import TransformerConfig
from cantata_layers.qwen_image.lora.fusing import Fusion
from cantata_layers.qwen_image.transformer.modulation import Modulations
from cantata_layers.qwen_image.transformer.network import (
    MODULATIONS,
    NAMES,
    Denoiser,
    DenoiserWeights,
)
from cantata_layers.qwen_image.transformer.placement import Placement


def load_denoiser(
    checkpoint: Path, config: TransformerConfig, placement: Placement, fusion: Fusion | None = None
) -> Denoiser:
    """Return a checkpoint's denoiser.

    Args:
        checkpoint: its folder.
        config: of it.
        placement: device and dtype.
        fusion: what LoRA files change in the weights.

    Raises:
        ConfigError: weights are missing or of another shape, or a LoRA does not fit.
    """
    with torch.device("meta"):
        weights = DenoiserWeights(config)
    folder = checkpoint / TRANSFORMER
    NAMES.fill(weights, _placed(folder, placement, fusion), folder)
    return Denoiser(config, weights.layers, Modulations(weights.modulations, placement.device))


def _placed(
    folder: Path, placement: Placement, fusion: Fusion | None
) -> Iterator[tuple[str, torch.Tensor]]:
    for name, tensor in NAMES.read(folder, WEIGHTS):
        fused = tensor if fusion is None else fusion.fused(name, tensor, placement.device)
        is_modulation = str(NAMES.own(name)).startswith(MODULATIONS)
        home = placement.modulation_home if is_modulation else placement.device
        yield name, fused.to(home, placement.dtype)
    if fusion is not None:
        fusion.check_complete()
