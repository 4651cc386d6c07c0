"""Code2wav for the codec stage."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_models.qwen3_omni.code2wav.decoder import Code2Wav


def load_decoder(checkpoint: Path, device: torch.device) -> Code2Wav:
    """Return the checkpoint's streaming decoder in fp32.

    Raises:
        ConfigError: the folder holds no speaking checkpoint.
    """
    return Code2Wav(checkpoint, device)
