"""How a codec stage feeds its decoder: frame by frame, or in blocks with frames ahead of them.

On a GPU, a decoder's steps are CUDA graphs, recorded while the stage loads.
Rows and frames of a batch decide which graph it takes. The plan makes chunks of a power of two of
frames; rows are padded with a spare slot, which is no stream's.

Letters: T frames, Q codebooks, E columns, N samples, C channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.config import CodecDeployment
from cantata.contract.data.chunks import Codes, Payload, Rows
from cantata.contract.model.codec import BlockDecoder, Decoder, StreamingDecoder
from cantata.contract.model.upload import upload
from cantata.stages.common.device import Download
from cantata.stages.common.graphs import RowGraphs
from cantata.stages.common.needs import count_row_graphs

Frames = Codes | Rows
DecodeCall = Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]
"""A call like `StreamingDecoder.decode`."""


def explain_mismatch(payload: Payload, decoder: Decoder) -> str | None:
    """Why a decoder cannot take a payload; None: it can."""
    if decoder.latent_size:
        return _find_latent_problem(payload, decoder.latent_size)
    return _find_code_problem(payload, decoder)


def to_tensor(frames: Sequence[NDArray[Any]]) -> torch.Tensor:
    """T frames -> [T, Q] int64 codes or [T, E] float32 latents; or B streams' -> [B, T, Q or E]."""
    stacked = torch.from_numpy(np.stack(frames))
    return stacked if stacked.is_floating_point() else stacked.long()


def _find_code_problem(payload: Payload, decoder: Decoder) -> str | None:
    if not isinstance(payload, Codes):
        return f"expected Codes, got {type(payload).__name__}"
    codebooks, size, values = decoder.num_codebooks, decoder.codebook_size, payload.values
    if values.ndim != 2 or values.shape[1] != codebooks:
        return f"expected [T, {codebooks}] codes, got {list(values.shape)}"
    if values.size and not 0 <= values.min() <= values.max() < size:
        return f"codes must be in 0..{size - 1}"
    return None


def _find_latent_problem(payload: Payload, latent_size: int) -> str | None:
    if not isinstance(payload, Rows):
        return f"expected Rows, got {type(payload).__name__}"
    values = payload.values
    if values.ndim != 2 or values.shape[1] != latent_size:
        return f"expected [T, {latent_size}] latents, got {list(values.shape)}"
    if not np.isfinite(values).all():
        return "latents must be finite"
    return None


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
        device: where it takes its inputs.
    """

    unit_frames = 1

    def __init__(self, decoder: StreamingDecoder, call: DecodeCall, device: torch.device) -> None:
        self.decoder, self._call, self._device = decoder, call, device

    def ready_units(self, queued: Queued) -> int:
        """Every frame is ready when it arrives."""
        return len(queued.frames)

    def decode(self, state: Any, rows: Sequence[Queued], units: int) -> list[Decoded]:
        """All rows in one call. The host waits once, for the copy of the samples."""
        frames = to_tensor([np.stack(row.frames[:units]) for row in rows])
        slots = torch.tensor([row.slot for row in rows])
        samples = self._call(state, upload(slots, self._device), upload(frames, self._device))
        channels = self.decoder.channels
        if samples.ndim != 3 or samples.shape[2] != channels:
            shape = list(samples.shape)
            raise RuntimeError(f"the decoder made {shape} samples; it must be [B, N, {channels}]")
        return [Decoded(units, row) for row in Download(samples.float()).wait().numpy()]


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
        for output in samples:
            self._check_samples(output)
        # All are on their way before the first is waited for.
        downloads = [Download(output.float()) for output in samples]
        return [
            Decoded(min(self.unit_frames, len(row.frames)), download.wait().numpy())
            for row, download in zip(rows, downloads, strict=True)
        ]

    def _check_samples(self, samples: torch.Tensor) -> None:
        if samples.ndim != 2 or samples.shape[1] != self.decoder.channels:
            shape, channels = list(samples.shape), self.decoder.channels
            raise RuntimeError(f"the decoder made {shape} samples; it must be [N, {channels}]")


def choose_decoding(decoder: StreamingDecoder | BlockDecoder, device: torch.device) -> Decoding:
    """How to feed a decoder that takes its inputs on this device."""
    if isinstance(decoder, BlockDecoder):
        return BlockByBlock(decoder)
    return FrameByFrame(decoder, decoder.decode, device)


SPARE_SLOTS = 1
"""One is enough: it may be in several rows, and what it holds means nothing."""


def can_record(decoder: StreamingDecoder | BlockDecoder, deployment: CodecDeployment) -> bool:
    """Whether a decoder's steps become CUDA graphs. In windows, positions are read on the host."""
    wanted = deployment.on_gpu and deployment.cuda_graphs and deployment.window is None
    return wanted and isinstance(decoder, StreamingDecoder) and decoder.recordable


def count_spare_slots(decoder: StreamingDecoder | BlockDecoder, deployment: CodecDeployment) -> int:
    """How many slots of state there are beside the deployment's."""
    return SPARE_SLOTS if can_record(decoder, deployment) else 0


def recorded(
    decoder: StreamingDecoder, state: Any, deployment: CodecDeployment, device: torch.device
) -> FrameByFrame:
    """Record the steps that the plan may ask for; nothing but the spare slot is decoded.

    Args:
        state: the decoder's, of `SPARE_SLOTS` more slots than the deployment has.
        device: where the decoder runs.

    Returns:
        What decodes with this state alone.
    """
    graphs = RowGraphs(partial(decoder.decode, state), device, "the decoder's step")
    for frames, rows in _list_recorded(deployment):
        spare = torch.tensor([deployment.slots]), _make_frames(decoder, frames)
        if not graphs.capture([upload(one, device) for one in spare], rows):
            break

    def decode(_: Any, slots: torch.Tensor, frames: torch.Tensor) -> torch.Tensor:
        return graphs(slots, frames)

    return FrameByFrame(decoder, decode, device)


def count_graphs(decoder: StreamingDecoder | BlockDecoder, deployment: CodecDeployment) -> int:
    """How many graphs `recorded` records."""
    if not can_record(decoder, deployment):
        return 0
    return sum(count_row_graphs(rows) for _, rows in _list_recorded(deployment))


def _list_recorded(deployment: CodecDeployment) -> list[tuple[int, int]]:
    """Numbers of frames, each with the most rows that are decoded together."""
    most = min(deployment.max_chunk_frames, deployment.max_batch_frames)
    counts = [1 << exponent for exponent in range(most.bit_length())]
    return [(n, min(deployment.slots, deployment.max_batch_frames // n)) for n in counts]


def _make_frames(decoder: StreamingDecoder, frames: int) -> torch.Tensor:
    """Frames that any decoder takes: [1, T, Q] int64 codes or [1, T, E] float32 latents."""
    if decoder.latent_size:
        return torch.zeros(1, frames, decoder.latent_size)
    return torch.zeros(1, frames, decoder.num_codebooks, dtype=torch.int64)
