"""The codec's decoder for the codec stage."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_models.fish_speech.codec.decoder import SpeechDecoder
from cantata_models.fish_speech.config import load_config


def load_decoder(checkpoint: Path, device: torch.device) -> SpeechDecoder:
    """Return the checkpoint's streaming decoder in fp32.

    Raises:
        ConfigError: the folder holds no such checkpoint.
    """
    return SpeechDecoder(checkpoint, device, load_config(checkpoint).first_codes)
