"""Stage inputs on their way to another process: equal there, or refused."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

import msgspec
import numpy as np
import pytest

from alike import same
from cantata.contract.data.request import SamplingOptions
from cantata.contract.data.transcripts import SPEECH_RATE, SoundPiece
from cantata.contract.process.messages import Register
from cantata.ipc.input_values import fits, flatten, get_hints, unflatten
from cantata.ipc.stage_messages import InvalidStageInput, decode_message, encode_message
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
    """As it arrives in another process."""
    sent = Register("r", cast(Any, value), batch=False)
    arrived = decode_message(bytearray(b"".join(encode_message(sent))), packages)
    assert isinstance(arrived, Register)
    return arrived.payload


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
        SoundPiece(np.linspace(-1, 1, 30 * SPEECH_RATE, dtype=np.float32), recognize=True),
        SoundPiece(np.zeros(0, np.float32)),
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
    with pytest.raises(InvalidStageInput, match=why) as raised:
        carried(dataclasses.replace(TinyInput([1]), **change))
    assert raised.value.request_id == "r"


@pytest.mark.parametrize(
    "change", [{"samples": np.zeros(4, np.float64)}, {"samples": [0.5]}, {"recognize": 1}]
)
def test_sound_of_other_types_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidStageInput, match="is not of type"):
        carried(dataclasses.replace(SoundPiece(np.zeros(4, np.float32)), **change))


def test_only_the_model_s_own_dataclasses_are_made() -> None:
    with pytest.raises(InvalidStageInput, match="belongs to none of"):
        carried(TinyInput([1]), {"another_package"})
    for name in ("os:system", "tiny_talker.inputs:np", "tiny_talker.plugin:TinyInput"):
        with pytest.raises(ValueError, match="what arrived is no stage's input"):
            unflatten([4, name, {}], (), OURS)
    tree, arrays = flatten(TinyInput([1]))
    del tree[2]["words"]
    with pytest.raises(ValueError, match="words is missing"):
        unflatten(tree, arrays, OURS)


def test_any_change_of_a_tree_is_refused_or_still_an_input() -> None:
    """Nothing but `ValueError` comes of what was altered on its way."""
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
        except (ValueError, msgspec.MsgspecError, UnicodeDecodeError):
            refused += 1
    assert refused > 1000


MODELS = Path(__file__).parents[3] / "models"
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
    for hint in get_hints(kind).values():
        for part in iterate_parts(hint):
            fits(object(), part)  # raises if it is none of plain data
            if is_dataclass(part):
                check_annotations(cast(type, part))


def iterate_parts(hint: Any) -> Iterator[Any]:
    yield hint
    if get_origin(hint) not in (np.ndarray, Literal):
        for part in get_args(hint):
            if part is not Ellipsis:
                yield from iterate_parts(part)
