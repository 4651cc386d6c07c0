"""Write whole checkpoint folders: the talker with its audio tokenizer inside."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_models.moss_tts.codec.locating import INSIDE
from cantata_models.moss_tts.random_checkpoint import codec_configs, talker_configs
from cantata_models.moss_tts.random_checkpoint.write_codec import write_codec
from cantata_models.moss_tts.random_checkpoint.write_talker import write_local, write_nano


def write_tiny_local(folder: Path, seed: int = 1) -> Path:
    """Write a tiny checkpoint of MOSS-TTS-Local into `folder` and return it."""
    write_codec(folder / INSIDE, codec_configs.TINY_LOCAL, seed)
    return write_local(folder, talker_configs.TINY_LOCAL, seed)


def write_tiny_nano(folder: Path, seed: int = 1) -> Path:
    """Write a tiny checkpoint of MOSS-TTS-Nano into `folder` and return it."""
    write_codec(folder / INSIDE, codec_configs.TINY_NANO, seed)
    return write_nano(folder, talker_configs.TINY_NANO, seed)


def write_published_local(folder: Path, seed: int = 1) -> Path:
    """Write a checkpoint of MOSS-TTS-Local of the published size into `folder` and return it."""
    write_codec(folder / INSIDE, codec_configs.LOCAL, seed)
    return write_local(folder, talker_configs.LOCAL, seed, torch.bfloat16)


def write_published_nano(folder: Path, seed: int = 1) -> Path:
    """Write a checkpoint of MOSS-TTS-Nano of the published size into `folder` and return it."""
    write_codec(folder / INSIDE, codec_configs.NANO, seed)
    return write_nano(folder, talker_configs.NANO, seed, torch.bfloat16)


def write_reduced_nano(folder: Path, seed: int = 1) -> Path:
    """Write a checkpoint of MOSS-TTS-Nano with fewer and narrower layers into `folder` and return
    it."""
    write_codec(folder / INSIDE, codec_configs.REDUCED_NANO, seed)
    return write_nano(folder, talker_configs.REDUCED_NANO, seed, torch.bfloat16)
