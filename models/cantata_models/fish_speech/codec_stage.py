"""The codec's decoder for the codec stage."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_models.fish_speech.codec.decoder import SpeechDecoder
from cantata_models.fish_speech.config import check_codec, load_config


def load_decoder(checkpoint: Path, device: torch.device) -> SpeechDecoder:
    """Return the checkpoint's streaming decoder in fp32.

    Raises:
        ConfigError: the folder holds no such checkpoint, or its codec does not fit its talker.
    """
    config = load_config(checkpoint)
    decoder = SpeechDecoder(checkpoint, device, config.first_codes, config.codebook_size)
    check_codec(config, checkpoint, decoder.num_codebooks, decoder.samples_per_frame)
    return decoder
