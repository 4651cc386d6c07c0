"""Inputs of stages and chunks, on their way between machines: equal there, or refused."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

import msgspec
import numpy as np
import pytest

from cantata.cluster.bodies import decode, encode
from cantata.cluster.link.errors import Garbage
from cantata.cluster.stages.annotations import fits, hints_of
from cantata.cluster.stages.chunks import ChunkMessage, decode_chunks, encode_chunks
from cantata.cluster.stages.messages import RegisterOrder, age_of, time_of
from cantata.cluster.stages.values import flatten, unflatten
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
)
from cantata.contract.data.packing import pack, unpack
from cantata.contract.data.request import SamplingOptions
from tiny_talker.inputs import TinyConversation, TinyInput, TinySound

OURS = {__name__.partition(".")[0], "tiny_talker"}


class Mood(StrEnum):
    CALM = "calm"


@dataclass(frozen=True)
class Mixed:
    """Every kind of annotation that inputs have."""

    mood: Mood
    speaker: int | np.ndarray[Any, np.dtype[np.float32]]
    parts: tuple[tuple[int, ...] | TinySound, ...]
    grid: tuple[int, int]
    raw: bytes
    share: float
    nothing: None = None


def carried(value: object, packages: set[str] = OURS) -> Any:
    """As it arrives at another machine."""
    tree, arrays = flatten(value)
    order = RegisterOrder("r", tree, arrays, batch=False, runs_dry_in_s=None, stretch=1.0)
    arrived = decode(bytearray(b"".join(encode(order))), RegisterOrder)
    return unflatten(arrived.payload, arrived.arrays, packages)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return type(one) is type(other) and all(
            same(getattr(one, name), getattr(other, name)) for name in names
        )
    if isinstance(one, tuple | list):
        equal = len(one) == len(other) and all(map(same, one, other))
        return type(one) is type(other) and equal
    return type(one) is type(other) and one == other


MIXED = Mixed(
    Mood.CALM,
    np.arange(3, dtype=np.float32),
    ((1, 2), TinySound(np.zeros(4, np.float32))),
    (3, 4),
    b"\x00\xff",
    2,
)


@pytest.mark.parametrize(
    "value",
    [
        TinyInput([1, 2], 5, sampling=SamplingOptions(7, 0.8, top_p=0.1 + 0.2)),
        TinyInput((1, 2), context=[[1, 2], [3, 4]]),
        TinyConversation([1], added={0: [0.5, 1.5]}, positions=[[0], [1], [2]]),
        MIXED,
        dataclasses.replace(MIXED, speaker=3),
        None,
    ],
)
def test_an_input_arrives_as_it_was(value: object) -> None:
    assert same(value, carried(value))


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (TinyInput(text=object()), "object"),  # type: ignore[arg-type]
        (TinyInput(max_frames=np.int64(3)), "int64"),  # type: ignore[arg-type]
        (TinyInput(text={1}), "set"),  # type: ignore[arg-type]
    ],
)
def test_what_no_input_holds_is_named_before_it_is_sent(value: object, named: str) -> None:
    with pytest.raises(TypeError, match=named):
        flatten(value)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"max_frames": "5"}, "max_frames is not of type"),
        ({"max_frames": True}, "max_frames is not of type"),
        ({"text": [1, "2"]}, "text is not of type"),
        ({"sampling": None}, "sampling is not of type"),
    ],
)
def test_fields_of_other_types_are_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(Garbage, match=why):
        carried(dataclasses.replace(TinyInput([1]), **change))


def test_only_the_model_s_own_dataclasses_are_made() -> None:
    with pytest.raises(Garbage, match="belongs to none of"):
        carried(TinyInput([1]), {"another_package"})
    for name in ("os:system", "tiny_talker.inputs:np", "tiny_talker.plugin:TinyInput"):
        with pytest.raises(Garbage):
            unflatten([4, name, {}], (), OURS)
    tree, arrays = flatten(TinyInput([1]))
    del tree[2]["words"]
    with pytest.raises(Garbage, match="words is missing"):
        unflatten(tree, arrays, OURS)


def test_any_change_of_a_tree_is_refused_or_still_an_input() -> None:
    """Nothing but `Garbage` comes of what was altered on its way."""
    chance = random.Random(1)
    tree, arrays = flatten(MIXED)
    text = msgspec.msgpack.encode(tree)
    refused = 0
    for _ in range(2000):
        altered = bytearray(text)
        for _ in range(chance.randint(1, 4)):
            altered[chance.randrange(len(altered))] = chance.randrange(256)
        try:
            unflatten(msgspec.msgpack.decode(altered), arrays, OURS)
        except (Garbage, msgspec.MsgspecError, UnicodeDecodeError):
            refused += 1
    assert refused > 1000


MODELS = Path(__file__).parents[4] / "models"
MODULES = sorted(
    ".".join(path.relative_to(MODELS).with_suffix("").parts) for path in MODELS.rglob("inputs.py")
)


@pytest.mark.parametrize("module", MODULES)
def test_every_model_s_inputs_can_be_checked(module: str) -> None:
    found = [kind for kind in vars(import_module(module)).values() if is_dataclass(kind)]
    assert found
    for kind in found:
        check_annotations(cast(type, kind))


def check_annotations(kind: type) -> None:
    for hint in hints_of(kind).values():
        for part in parts_of(hint):
            fits(object(), part)  # raises if it is none of plain data
            if is_dataclass(part):
                check_annotations(cast(type, part))


def parts_of(hint: Any) -> Iterator[Any]:
    yield hint
    if get_origin(hint) not in (np.ndarray, Literal):
        for part in get_args(hint):
            if part is not Ellipsis:
                yield from parts_of(part)


WORDS = (WordTiming(0, 0.0, 0.5), WordTiming(1, 0.5, 0.75))
CHUNKS: list[Chunk[Payload]] = [
    Chunk("a", "codes", 0, Codes(np.ones((2, 16), np.int32), 1, WORDS), final=False),
    Chunk("b", "codes", 7, Codes(np.zeros((0, 16), np.int32)), final=True),
    Chunk("a", "rows", 0, Rows(np.ones((3, 5), np.float32), 2), final=False),
    Chunk("a", "pcm", 1, Pcm(np.full((4, 2), 0.1, np.float32), WORDS), final=True),
    Chunk("a", "image", 0, Image(np.ones((2, 3, 3), np.uint8)), final=True),
    Chunk("a", "progress", 0, Progress(np.ones((2, 3, 3), np.uint8), 0, 8), final=False),
    Chunk("b", "progress", 1, Progress(np.ones((0, 3, 3), np.uint8), 3, 8), final=False),
]


def arrived_as(chunks: list[Chunk[Payload]]) -> list[Chunk[Payload]]:
    return unpack(decode_chunks(bytearray(b"".join(encode_chunks(pack(chunks))))))


def test_chunks_arrive_as_they_were() -> None:
    arrived = arrived_as(CHUNKS)
    assert len(arrived) == len(CHUNKS)
    assert all(map(same, CHUNKS, arrived))


def test_milestones_keep_their_age() -> None:
    now = time.monotonic()
    chunk = dataclasses.replace(CHUNKS[0], milestones=(Milestone("talker", now - 5.0),))
    [arrived] = arrived_as([chunk])
    [milestone] = arrived.milestones
    assert milestone.step == "talker"
    assert 0 <= milestone.at_s - (now - 5.0) <= time.monotonic() - now
    due = age_of(now + 3.0)
    assert due is not None
    assert due <= 3.0
    assert time_of(None) is age_of(None) is None


@pytest.mark.parametrize(
    "change",
    [
        {"payload": "Rows"},
        {"payload": "Voice"},
        {"lengths": (1,)},
        {"lengths": (-1, 3)},
        {"finals": (True,)},
        {"indexes": ()},
        {"array": np.ones((2, 16), np.int64)},
        {"array": np.ones((2, 16, 1), np.int32)},
        {"beside": {5: {}}},
    ],
)
def test_chunks_that_contradict_themselves_are_refused(change: dict[str, Any]) -> None:
    body = bytearray(b"".join(encode_chunks(pack(CHUNKS[:2]))))
    [group] = decode(body, ChunkMessage).groups
    altered = ChunkMessage((dataclasses.replace(group, **change),))
    with pytest.raises(Garbage):
        decode_chunks(bytearray(b"".join(encode(altered))))
