"""The speech tokenizer's decoder for the codec stage."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_models.qwen3_tts.codec.decoder import SpeechDecoder


def load_decoder(checkpoint: Path, device: torch.device) -> SpeechDecoder:
    """Return the checkpoint's streaming decoder in fp32."""
    return SpeechDecoder(checkpoint, device)
