"""The audio tokenizers' decoders for the codec stage."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_models.moss_tts.codec.decoder import AudioDecoder
from cantata_models.moss_tts.codec.locating import checked_tokenizer
from cantata_models.moss_tts.config.local import load_local_config
from cantata_models.moss_tts.config.nano import load_nano_config
from cantata_models.moss_tts.config.shared import MossConfig


def load_local_decoder(checkpoint: Path, device: torch.device) -> AudioDecoder:
    """Return the streaming decoder of MOSS-TTS-Local's tokenizer in fp32.

    Raises:
        ConfigError: the tokenizer is missing, lacks weights, or is not of this checkpoint.
    """
    return _load(checkpoint, load_local_config(checkpoint), device)


def load_nano_decoder(checkpoint: Path, device: torch.device) -> AudioDecoder:
    """Return that of MOSS-TTS-Nano's; as `load_local_decoder`."""
    return _load(checkpoint, load_nano_config(checkpoint), device)


def _load(checkpoint: Path, config: MossConfig, device: torch.device) -> AudioDecoder:
    return AudioDecoder(checked_tokenizer(checkpoint, config), config.num_codebooks, device)
