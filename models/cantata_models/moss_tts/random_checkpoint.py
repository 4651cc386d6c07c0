"""Writes checkpoints of seeded random weights, tiny or of the published size (`python -m`).

Those of the published size make noise as fast as the real checkpoint makes speech: speed depends on
shapes, not on values.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from cantata_models.moss_tts import random_checkpoint_codec, random_checkpoint_talker
from cantata_models.moss_tts.random_checkpoint_codec import write_codec
from cantata_models.moss_tts.random_checkpoint_talker import write_local, write_nano
from cantata_models.moss_tts.tokenizer_config import INSIDE


def write_tiny_local(folder: Path, seed: int = 1) -> Path:
    """Write a tiny checkpoint of MOSS-TTS-Local into `folder` and return it."""
    write_codec(folder / INSIDE, random_checkpoint_codec.TINY_LOCAL, seed)
    return write_local(folder, random_checkpoint_talker.TINY_LOCAL, seed)


def write_tiny_nano(folder: Path, seed: int = 1) -> Path:
    """Write a tiny checkpoint of MOSS-TTS-Nano into `folder` and return it."""
    write_codec(folder / INSIDE, random_checkpoint_codec.TINY_NANO, seed)
    return write_nano(folder, random_checkpoint_talker.TINY_NANO, seed)


def write_published_local(folder: Path, seed: int = 1) -> Path:
    """Write a checkpoint of MOSS-TTS-Local of the published size into `folder` and return it."""
    write_codec(folder / INSIDE, random_checkpoint_codec.LOCAL, seed)
    return write_local(folder, random_checkpoint_talker.LOCAL, seed, torch.bfloat16)


def write_published_nano(folder: Path, seed: int = 1) -> Path:
    """Write a checkpoint of MOSS-TTS-Nano of the published size into `folder` and return it."""
    write_codec(folder / INSIDE, random_checkpoint_codec.NANO, seed)
    return write_nano(folder, random_checkpoint_talker.NANO, seed, torch.bfloat16)


def write_reduced_nano(folder: Path, seed: int = 1) -> Path:
    """Write a checkpoint of MOSS-TTS-Nano with fewer and narrower layers into `folder` and return
    it."""
    write_codec(folder / INSIDE, random_checkpoint_codec.REDUCED_NANO, seed)
    return write_nano(folder, random_checkpoint_talker.REDUCED_NANO, seed, torch.bfloat16)


WRITERS = {
    "local": write_published_local,
    "nano": write_published_nano,
    "nano-reduced": write_reduced_nano,
}


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.moss_tts.random_checkpoint",
        description="Write a checkpoint with random weights (nano: 0.3 GB, local: 18 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", choices=sorted(WRITERS), default="nano")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(WRITERS[arguments.model](arguments.folder, arguments.seed))


if __name__ == "__main__":
    main()
