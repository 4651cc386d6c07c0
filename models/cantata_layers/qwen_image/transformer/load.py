"""Loads the denoiser's published weights."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from cantata_layers.checkpoint import read_tensors
from cantata_layers.qwen_image.config.pipeline import TRANSFORMER, WEIGHTS
from cantata_layers.qwen_image.config.transformer import TransformerConfig
from cantata_layers.qwen_image.loading import fill
from cantata_layers.qwen_image.lora.fusing import Fusion
from cantata_layers.qwen_image.transformer.modulation import Modulations, ModulationWeights
from cantata_layers.qwen_image.transformer.network import Denoiser, Layers
from cantata_layers.qwen_image.transformer.placement import Placement

MODULATIONS = (
    (re.compile(r"transformer_blocks\.(\d+)\.img_mod\.1\."), r"image.\1."),
    (re.compile(r"transformer_blocks\.(\d+)\.txt_mod\.1\."), r"text.\1."),
    (re.compile(r"time_text_embed\.timestep_embedder\."), "embedder."),
    (re.compile(r"norm_out\.linear\."), "last."),
)
"""Published names of the modulations' weights -> their names here."""


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
        layers = Layers(config)
        modulations = ModulationWeights(config.width, config.layers)
    folder = checkpoint / TRANSFORMER
    main: dict[str, torch.Tensor] = {}
    others: dict[str, torch.Tensor] = {}
    for name, tensor in read_tensors(folder, stem=WEIGHTS):
        fused = tensor if fusion is None else fusion.fused(name, tensor, placement.device)
        own = modulation_name(name)
        if own is None:
            main[name] = fused.to(placement.device, placement.dtype)
        else:
            others[own] = fused.to(placement.modulation_home, placement.dtype)
    if fusion is not None:
        fusion.check_complete()
    fill(layers, main.items(), folder)
    fill(modulations, others.items(), folder)
    return Denoiser(config, layers, Modulations(modulations, placement.device))


def modulation_name(name: str) -> str | None:
    """The name in `ModulationWeights` of a published tensor; None: it is not there."""
    for pattern, replacement in MODULATIONS:
        renamed, count = pattern.subn(replacement, name)
        if count:
            return renamed
    return None
