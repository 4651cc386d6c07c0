"""solo's decoder as a codec stage serves it."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_models.solo.checkpoint import load_codec_decoder
from cantata_models.solo.networks.codec_decoder import CodecDecoder


def load_decoder(checkpoint: Path, device: torch.device) -> CodecDecoder:
    """The checkpoint's streaming decoder, in fp32, ready to decode."""
    return load_codec_decoder(checkpoint).to(device).eval()
