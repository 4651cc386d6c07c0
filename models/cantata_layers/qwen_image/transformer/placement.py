"""Where the denoiser's weights lie."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cantata_layers.qwen_image.config.transformer import TransformerConfig

BLOCK = 36
"""Squares of the width in a block's weights, as the next."""
BLOCK_MODULATION = 12
ROOM = 1.2
"""Memory for weights and what is computed with them, over the weights alone."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Devices and dtype of a denoiser."""

    device: torch.device
    dtype: torch.dtype
    modulation_home: torch.device
    """Where the weights of modulations lie; if not on `device`, each is copied there when it is
    used, once for each new share of noise."""


def place(config: TransformerConfig, device: torch.device, dtype: torch.dtype) -> Placement:
    """Keep the weights of modulations off a GPU that has no room for everything."""
    if device.type != "cuda":
        return Placement(device, dtype, device)
    free, _ = torch.cuda.mem_get_info(device)
    away = weight_bytes(config, dtype) * ROOM > free
    return Placement(device, dtype, torch.device("cpu") if away else device)


def weight_bytes(config: TransformerConfig, dtype: torch.dtype, *, modulation: bool = True) -> int:
    """About how large the weights are, with or without those of the modulations."""
    squares = BLOCK if modulation else BLOCK - BLOCK_MODULATION
    return squares * config.width**2 * config.layers * dtype.itemsize
