"""The codec's decoder: time of a step by rows and frames.

Letters: B rows, T frames, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from cantata.contract.model.codec import StreamingDecoder
from cantata.stages.common.device import allow_tf32
from cantata.stages.common.graphs import ShapeGraphs
from cantata_models.qwen3_tts.codec import Qwen3TtsDecoder
from gpu.timing import Compared, compared

BATCHES, FRAMES = (1, 4, 8, 16, 32, 64), (1, 2, 4, 8, 25)
TINY_BATCHES, TINY_FRAMES = (1, 2), (1, 3)
MAX_FRAMES = 256
"""B * T of a step; more only takes memory."""
PRECISIONS = ("float32", "tf32")
"""On CUDA; a CPU has the first alone."""


@dataclass(frozen=True, slots=True)
class CodecRow:
    """Timings of one shape."""

    batch: int
    frames: int
    audio_s: float
    """Sound in one step."""
    step: Compared
    precision: str = PRECISIONS[0]
    """How exactly its products are made."""


def measure(checkpoint: Path, device: torch.device, tiny: bool) -> Iterator[CodecRow]:
    """Every shape; on CUDA in TF32 too."""
    decoder = Qwen3TtsDecoder(checkpoint, device)
    batches, frames = (TINY_BATCHES, TINY_FRAMES) if tiny else (BATCHES, FRAMES)
    shapes = [(b, t) for b in batches for t in frames if b * t <= MAX_FRAMES]
    for precision in PRECISIONS if device.type == "cuda" else PRECISIONS[:1]:
        if device.type == "cuda":
            allow_tf32(precision == "tf32")
        for batch, count, step in decoder_steps(decoder, shapes, device):
            audio_s = batch * count * decoder.samples_per_frame / decoder.sample_rate
            yield CodecRow(batch, count, audio_s, step, precision)


def decoder_steps(
    decoder: StreamingDecoder, shapes: list[tuple[int, int]], device: torch.device
) -> Iterator[tuple[int, int, Compared]]:
    """Time the steps of a decoder.

    Args:
        shapes: B and T each.

    Returns:
        The shapes with their times.
    """
    state = decoder.init_state(max(batch for batch, _ in shapes))

    def decode(slots: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        return decoder.decode(state, slots, codes)

    graphs = ShapeGraphs(decode, device)
    for batch, frames in shapes:
        slots = torch.arange(batch, device=device)
        shape = (batch, frames, decoder.num_codebooks)
        codes = torch.randint(decoder.codebook_size, shape, device=device)

        def begin(slots: torch.Tensor = slots) -> None:
            decoder.reset(state, slots)

        begin()
        yield batch, frames, compared(decode, graphs, (slots, codes), device, begin)
