"""Packs a step's chunks into few large objects; encoded one by one, 32 chunks take four times the
CPU.

Chunks of one port share an array. What few chunks have (words, milestones) is stored apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

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
    to_array,
)
from cantata.contract.data.transcripts import TranscriptUpdate


class ChunkGroup(NamedTuple):
    """Consecutive chunks of one port whose arrays differ in length only."""

    kind: type[Payload]
    port: str
    request_ids: list[str]
    indexes: list[int]
    finals: list[bool]
    lengths: list[int]
    """The length of each one's part of the array."""
    array: NDArray[Any]
    extras: dict[int, tuple[tuple[Any, ...], tuple[Milestone, ...]]]
    """By number of the chunk: its payload's fields after the array, and its milestones."""


Packed = tuple[ChunkGroup, ...]
"""A message of chunks, for `unpack`."""


def pack(chunks: Sequence[Chunk[Payload]]) -> Packed:
    """Pack any chunks, as one group for each run of equal ports and shapes."""
    return tuple(_pack_alike(list(alike)) for _, alike in groupby(chunks, _describe_shape))


def unpack(packed: Packed) -> list[Chunk[Payload]]:
    return [chunk for group in packed for chunk in _unpack_alike(group)]


def _get_metadata(payload: Payload) -> tuple[Any, ...]:
    """The fields of a payload after its array."""
    match payload:
        case Codes(_, context_frames, words, logprobs, top_logprobs, cached_positions):
            return context_frames, words, logprobs, top_logprobs, cached_positions
        case Rows(_, context_frames, words):
            return context_frames, words
        case Pcm(_, words):
            return (words,)
        case Image():
            return ()
        case Progress(_, step, steps):
            return step, steps
        case TranscriptUpdate(_, transcript):
            return (transcript,)


def _describe_shape(chunk: Chunk[Payload]) -> tuple[Any, ...]:
    array = to_array(chunk.payload)
    return chunk.port, type(chunk.payload), array.dtype, array.shape[1:]


def _pack_alike(chunks: list[Chunk[Payload]]) -> ChunkGroup:
    arrays = [to_array(chunk.payload) for chunk in chunks]
    others = [_get_metadata(chunk.payload) for chunk in chunks]
    extras = {
        number: (others[number], chunk.milestones)
        for number, chunk in enumerate(chunks)
        if chunk.milestones or any(others[number])
    }
    return ChunkGroup(
        type(chunks[0].payload),
        chunks[0].port,
        [chunk.request_id for chunk in chunks],
        [chunk.index for chunk in chunks],
        [chunk.final for chunk in chunks],
        [len(array) for array in arrays],
        arrays[0] if len(arrays) == 1 else np.concatenate(arrays),
        extras,
    )


def _unpack_alike(group: ChunkGroup) -> list[Chunk[Payload]]:
    kind, port, request_ids, indexes, finals, lengths, array, extras = group
    chunks: list[Chunk[Payload]] = []
    start = 0
    for number, (request_id, index, final, length) in enumerate(
        zip(request_ids, indexes, finals, lengths, strict=True)
    ):
        others, milestones = extras.get(number, ((), ()))
        payload = kind(array[start : start + length], *others)
        start += length
        chunks.append(Chunk(request_id, port, index, payload, final, milestones))
    return chunks
