"""Chunks as a typed message, which is checked on arrival.

Chunks of one port share an array, as in `contract.data.packing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import (
    Chunk,
    Codes,
    Image,
    Milestone,
    Payload,
    Pcm,
    Progress,
    Rows,
    WordTiming,
    to_array,
)
from cantata.contract.data.packing import ChunkGroup, pack, unpack
from cantata.contract.data.transcripts import Transcript, TranscriptUpdate
from cantata.ipc.wire import BrokenChannel

PayloadName = Literal["Codes", "Rows", "Pcm", "Image", "Progress", "TranscriptUpdate"]


@dataclass(frozen=True, slots=True)
class _Form:
    """What a payload consists of."""

    kind: type[Payload]
    number: type[np.generic]
    axes: int
    others: tuple[str, ...]
    """Its fields after the array, in their order, as `ChunkMetadata` names them."""


_CODES = ("context_frames", "words", "logprobs", "top_logprobs", "cached_positions")
_FORMS: Mapping[str, _Form] = {
    form.kind.__name__: form
    for form in (
        _Form(Codes, np.int32, 2, _CODES),
        _Form(Rows, np.float32, 2, ("context_frames", "words")),
        _Form(Pcm, np.float32, 2, ("words",)),
        _Form(Image, np.uint8, 3, ()),
        _Form(Progress, np.uint8, 3, ("step", "steps")),
        _Form(TranscriptUpdate, np.int32, 1, ("transcript",)),
    )
}


@dataclass(frozen=True, slots=True)
class ChunkMetadata:
    """What few chunks have besides their array; each payload has some of these."""

    context_frames: int = 0
    words: tuple[WordTiming, ...] = ()
    logprobs: tuple[float, ...] = ()
    top_logprobs: tuple[tuple[tuple[int, float], ...], ...] = ()
    cached_positions: int = 0
    step: int = 0
    steps: int = 0
    transcript: Transcript | None = None
    milestones: tuple[Milestone, ...] = ()
    """Of the clock of the machine that made the chunk."""


_NOTHING = ChunkMetadata()


@dataclass(frozen=True, slots=True)
class EncodedGroup:
    """A `ChunkGroup`, as it is sent."""

    payload: PayloadName
    port: str
    request_ids: tuple[str, ...]
    indexes: tuple[int, ...]
    finals: tuple[bool, ...]
    lengths: tuple[int, ...]
    array: NDArray[Any]
    metadata: Mapping[int, ChunkMetadata] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChunkMessage:
    """What a step made at one port, or for the client."""

    groups: tuple[EncodedGroup, ...]

    @classmethod
    def of(cls, chunks: Sequence[Chunk[Payload]]) -> ChunkMessage:
        """These chunks; their arrays must not change until it is encoded. Raises TypeError: numbers
        of an array are not of its payload's kind."""
        return cls(tuple(map(_encode_group, pack(chunks))))

    def chunks(self, behind_s: float) -> list[Chunk[Payload]]:
        """The chunks, whose arrays are the message's.

        Args:
            behind_s: by how much the clock of the machine that made them is behind this one's.

        Raises:
            BrokenChannel: it contradicts itself.
        """
        return unpack(tuple(_decode_group(group, behind_s) for group in self.groups))


def find_problem(payload: Payload) -> str | None:
    """Why this payload cannot be sent; None if it can."""
    form, array = _FORMS[type(payload).__name__], to_array(payload)
    if array.ndim == form.axes and np.can_cast(array.dtype, form.number, "same_kind"):
        return None
    needed = f"{np.dtype(form.number)}, {form.axes} axes"
    return f"an array of {array.dtype}, shape {array.shape}, instead of {needed}"


def _encode_group(group: ChunkGroup) -> EncodedGroup:
    kind, port, request_ids, indexes, finals, lengths, array, extras = group
    name: Any = kind.__name__
    form = _FORMS[name]
    if array.dtype != form.number:
        array = array.astype(form.number, casting="same_kind")
    metadata = {
        number: ChunkMetadata(**dict(zip(form.others, others, strict=True)), milestones=milestones)
        for number, (others, milestones) in extras.items()
    }
    ids, places, ends = tuple(request_ids), tuple(indexes), tuple(finals)
    return EncodedGroup(name, port, ids, places, ends, tuple(lengths), array, metadata)


def _decode_group(group: EncodedGroup, behind_s: float) -> ChunkGroup:
    form, array, count = _FORMS[group.payload], group.array, len(group.request_ids)
    lists = (group.indexes, group.finals, group.lengths)
    problem = None
    if array.dtype != form.number or array.ndim != form.axes:
        problem = f"an array of {array.dtype}, shape {array.shape}"
    elif any(len(one) != count for one in lists) or min(group.lengths, default=0) < 0:
        problem = f"{count} chunks, and lists of {[len(one) for one in lists]}"
    elif sum(group.lengths) != len(array):
        problem = f"lengths of {sum(group.lengths)} in an array of {len(array)}"
    elif not set(group.metadata) <= set(range(count)):
        problem = f"fields of chunks {sorted(group.metadata)} of {count}"
    elif form.kind is TranscriptUpdate and not all(
        group.metadata.get(number, _NOTHING).transcript for number in range(count)
    ):
        problem = "a chunk has no transcript"
    if problem is not None:
        raise BrokenChannel(f"what arrived is no {group.payload}: {problem}")
    numbers = range(count) if form.kind is Progress else group.metadata
    extras = {
        number: _shift_extra(form, group.metadata.get(number, _NOTHING), behind_s)
        for number in numbers
    }
    return ChunkGroup(
        form.kind,
        group.port,
        list(group.request_ids),
        list(group.indexes),
        list(group.finals),
        list(group.lengths),
        array,
        extras,
    )


def _shift_extra(form: _Form, metadata: ChunkMetadata, behind_s: float) -> tuple[Any, ...]:
    others = tuple(getattr(metadata, name) for name in form.others)
    return others, tuple(Milestone(one.step, one.at_s + behind_s) for one in metadata.milestones)


assert set(_FORMS) == set(get_args(PayloadName))
