"""How a codec stage feeds its decoder: frame by frame, or in blocks with frames ahead of them.

Letters: T frames, Q codebooks, E columns, N samples, C channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.model.codec import BlockDecoder, Decoder, StreamingDecoder
from cantata.stages.codec.frames import to_tensor

DecodeCall = Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]
"""A call like `StreamingDecoder.decode`."""


@dataclass(frozen=True, slots=True)
class Queued:
    """One stream's frames that are not decoded yet."""

    slot: int
    frames: list[NDArray[Any]]
    """[Q] int32 codes or [E] float32 latents each."""
    complete: bool
    """None follow."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What became of one stream."""

    frames: int
    """How many of its frames are done with."""
    samples: NDArray[np.float32]
    """[N, C]; N may be 0."""


class Decoding(Protocol):
    """Feeds one decoder. Its unit is the least that is decoded at once."""

    unit_frames: int

    @property
    def decoder(self) -> Decoder: ...

    def ready_units(self, queued: Queued) -> int:
        """How many units of a stream could be decoded now."""
        ...

    def decode(self, state: Any, rows: Sequence[Queued], units: int) -> list[Decoded]:
        """Decode so many units of each of these streams."""
        ...


class FrameByFrame:
    """Implements `Decoding` over a `StreamingDecoder`.

    Args:
        call: what decodes; the decoder itself, or a recording of it.
    """

    unit_frames = 1

    def __init__(self, decoder: StreamingDecoder, call: DecodeCall) -> None:
        self.decoder, self._call = decoder, call

    def ready_units(self, queued: Queued) -> int:
        """Every frame is ready when it arrives."""
        return len(queued.frames)

    def decode(self, state: Any, rows: Sequence[Queued], units: int) -> list[Decoded]:
        """All rows in one call."""
        frames = to_tensor([np.stack(row.frames[:units]) for row in rows])
        slots = torch.tensor([row.slot for row in rows])
        samples = self._call(state, slots, frames)
        channels = self.decoder.channels
        if samples.ndim != 3 or samples.shape[2] != channels:
            shape = list(samples.shape)
            raise RuntimeError(f"the decoder made {shape} samples; it must be [B, N, {channels}]")
        return [Decoded(units, row) for row in samples.to("cpu", torch.float32).numpy()]


class BlockByBlock:
    """Implements `Decoding` over a `BlockDecoder`. A unit is a block; a call decodes one."""

    def __init__(self, decoder: BlockDecoder) -> None:
        self.decoder = decoder
        self.unit_frames = decoder.block_frames
        self._ahead = decoder.ahead_frames

    def ready_units(self, queued: Queued) -> int:
        """1 once the block and what is ahead of it are there, or the end is."""
        enough = 1 if queued.complete else self.unit_frames + self._ahead
        return int(len(queued.frames) >= enough)

    def decode(self, state: Any, rows: Sequence[Queued], units: int) -> list[Decoded]:
        """The next block of each row."""
        seen = self.unit_frames + self._ahead
        frames = [to_tensor(row.frames[:seen]) for row in rows]
        last = [row.complete and len(row.frames) <= self.unit_frames for row in rows]
        slots = torch.tensor([row.slot for row in rows])
        samples = self.decoder.decode_blocks(state, slots, frames, last)
        return [
            Decoded(min(self.unit_frames, len(row.frames)), self._checked(output))
            for row, output in zip(rows, samples, strict=True)
        ]

    def _checked(self, samples: torch.Tensor) -> NDArray[np.float32]:
        if samples.ndim != 2 or samples.shape[1] != self.decoder.channels:
            shape, channels = list(samples.shape), self.decoder.channels
            raise RuntimeError(f"the decoder made {shape} samples; it must be [N, {channels}]")
        output: NDArray[np.float32] = samples.to("cpu", torch.float32).numpy()
        return output


def choose_decoding(decoder: StreamingDecoder | BlockDecoder) -> Decoding:
    """How to feed this decoder."""
    if isinstance(decoder, BlockDecoder):
        return BlockByBlock(decoder)
    return FrameByFrame(decoder, decoder.decode)
