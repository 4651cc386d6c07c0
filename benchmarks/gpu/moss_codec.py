"""The decoders of MOSS-TTS's tokenizers: time of a step by rows and frames.

Letters: B rows, T frames.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from cantata_models.moss_tts import random_checkpoint_codec
from cantata_models.moss_tts.codec import AudioDecoder
from cantata_models.moss_tts.random_checkpoint_codec import write_codec
from gpu.codec import decoder_steps
from gpu.timing import Compared

BATCHES, FRAMES = (1, 4, 8, 16), (1, 2, 4, 8)
TINY_BATCHES, TINY_FRAMES = (1, 2), (1, 3)
LOCAL_CODEBOOKS = 12
"""How many of its tokenizer's codebooks MOSS-TTS-Local uses."""
MAX_FRAMES = 32
"""B * T of a step: each frame attends apart, so its kernels are launched once more."""


@dataclass(frozen=True, slots=True)
class MossCodecRow:
    """Timings of one shape."""

    model: str
    """local or nano."""
    batch: int
    frames: int
    audio_s: float
    """Sound in one step."""
    step: Compared


def measure(checkpoint: Path, device: torch.device, tiny: bool) -> Iterator[MossCodecRow]:
    """Every shape of both tokenizers, which are written here; `checkpoint` is not used."""
    tiny_shapes = {
        "local": random_checkpoint_codec.TINY_LOCAL,
        "nano": random_checkpoint_codec.TINY_NANO,
    }
    published = {"local": random_checkpoint_codec.LOCAL, "nano": random_checkpoint_codec.NANO}
    batches, frames = (TINY_BATCHES, TINY_FRAMES) if tiny else (BATCHES, FRAMES)
    shapes = [(b, t) for b in batches for t in frames if b * t <= MAX_FRAMES]
    for model, shape in (tiny_shapes if tiny else published).items():
        used = LOCAL_CODEBOOKS if model == "local" and not tiny else shape.codebooks
        with tempfile.TemporaryDirectory() as folder:
            decoder = AudioDecoder(write_codec(Path(folder), shape, 0), used, device)
        for batch, count, step in decoder_steps(decoder, shapes, device):
            audio_s = batch * count * decoder.samples_per_frame / decoder.sample_rate
            yield MossCodecRow(model, batch, count, audio_s, step)
