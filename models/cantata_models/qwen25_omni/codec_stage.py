"""The last stage's decoder: codes to sound."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_models.qwen25_omni.token2wav.decoder import WindowDecoder


def load_decoder(checkpoint: Path, device: torch.device) -> WindowDecoder:
    """Return the checkpoint's decoder in float32, as its publisher runs it."""
    return WindowDecoder(checkpoint, device)
