"""solo's decoder for the codec stage."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_models.solo.checkpoint import load_codec_decoder
from cantata_models.solo.networks.codec_decoder import CodecDecoder


def load_decoder(checkpoint: Path, device: torch.device) -> CodecDecoder:
    """Returns the checkpoint's streaming decoder in fp32."""
    return load_codec_decoder(checkpoint).to(device).eval()
