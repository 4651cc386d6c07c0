"""The codec's decoder: time of a step by rows, frames, and inputs that a convolution takes at once.

Letters: B rows, T frames, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from cantata.contract.model.codec import CodeDecoder, StreamingDecoder
from cantata.stages.common.graphs import ShapeGraphs
from cantata.stages.common.precision import allow_tf32
from cantata_layers import causal_convolutions
from cantata_models.qwen3_tts.codec.decoder import SpeechDecoder
from gpu.timing import Compared, compared

BATCHES, FRAMES = (1, 4, 8, 16, 32, 64), (1, 2, 4, 8, 25)
TINY_BATCHES, TINY_FRAMES = (1, 2), (1, 3)
MAX_FRAMES = 256
"""B * T of a step; more only takes memory."""
WHOLE = 1 << 28
"""Inputs side by side, 1 GB: a convolution is one product in every shape that is measured."""


class StreamingCodeDecoder(StreamingDecoder, CodeDecoder, Protocol):
    """A decoder that takes codes frame by frame."""


@dataclass(frozen=True, slots=True)
class CodecRow:
    """Timings of one shape."""

    block_values: int
    """Inputs that a convolution lays side by side at once, `causal_convolutions.BLOCK_VALUES`."""
    batch: int
    frames: int
    audio_s: float
    """Sound in one step."""
    step: Compared
    precision: str = "float32"
    """Or tf32: the inputs of products are rounded."""


def measure(checkpoint: Path, device: torch.device, tiny: bool) -> Iterator[CodecRow]:
    """Every shape, first with the blocks that are served; on CUDA at last in TF32.

    WHY both: blocks keep a CPU's cache warm. A GPU has no use for them, and each is a launch.
    """
    decoder = SpeechDecoder(checkpoint, device)
    batches, frames = (TINY_BATCHES, TINY_FRAMES) if tiny else (BATCHES, FRAMES)
    shapes = [(b, t) for b in batches for t in frames if b * t <= MAX_FRAMES]
    served = causal_convolutions.BLOCK_VALUES
    kinds = [(served, False), (WHOLE, False)]
    if device.type == "cuda":
        kinds.append((WHOLE, True))
    try:
        for block_values, rounded in kinds:
            causal_convolutions.BLOCK_VALUES = block_values
            if device.type == "cuda":
                allow_tf32(rounded)
            precision = "tf32" if rounded else "float32"
            for batch, count, step in decoder_steps(decoder, shapes, device):
                audio_s = batch * count * decoder.samples_per_frame / decoder.sample_rate
                yield CodecRow(block_values, batch, count, audio_s, step, precision)
    finally:
        causal_convolutions.BLOCK_VALUES = served


def decoder_steps(
    decoder: StreamingCodeDecoder, shapes: list[tuple[int, int]], device: torch.device
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
