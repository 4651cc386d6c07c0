"""Control messages of a stage as bytes: equal at the other end, or refused."""

from __future__ import annotations

import random

import numpy as np
import pytest

from alike import same
from cantata.contract.data.errors import Overloaded, RequestFailed, VoiceNotFound
from cantata.contract.process.messages import (
    Abort,
    Aborted,
    CannotStart,
    Credit,
    Drained,
    DrainStage,
    Extend,
    Failed,
    ForwardCost,
    Histogram,
    Output,
    Ping,
    Pong,
    Ready,
    Register,
    StageCapacity,
    StepCost,
    StepMeasured,
    StepReport,
)
from cantata.ipc.stage_messages import StageMessage, decode_message, encode_message
from cantata.ipc.wire import BrokenChannel
from stage_chunks import pcm_chunk
from tiny_talker.inputs import TinyInput

OURS = {"tiny_talker"}
HISTOGRAM = Histogram((0.1, 1.0), (3, 0, 1), 4.5)
MESSAGES: list[StageMessage] = [
    Register("a", TinyInput([1, 2], 5), batch=True, playout_deadline_s=12.5, stretch=0.5),
    Register("b", None, batch=False),
    Extend("a", TinyInput((3,)), final=True),
    Abort(("a", "b")),
    Credit("a", 24_000),
    Ping(7),
    DrainStage(),
    Ready(StageCapacity(8, 0.08, sample_rate=24_000)),
    CannotStart("no such file"),
    StepMeasured(StepCost(0.001, 0.0002)),
    StepMeasured(ForwardCost(0.001, 0.0002, 0.0)),
    Aborted(("a",)),
    Pong(7, {"requests": 2}, StepReport(HISTOGRAM, HISTOGRAM), held=("a", "b")),
    Drained(),
]


def sent(message: StageMessage, behind_s: float = 0.0) -> StageMessage:
    return decode_message(bytearray(b"".join(encode_message(message))), OURS, behind_s)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_arrives_as_it_was(message: StageMessage) -> None:
    assert same(sent(message), message)


@pytest.mark.parametrize(
    "error", [Overloaded("full", 2.5), VoiceNotFound("no such voice", "voice"), RequestFailed("x")]
)
def test_errors_cross_processes_whole(error: RequestFailed) -> None:
    received = sent(Failed("a", error))
    assert isinstance(received, Failed)
    assert type(received.error) is type(error)
    assert vars(received.error) == vars(error)
    assert str(received.error) == str(error)


def test_times_are_moved_to_the_clock_of_the_receiver() -> None:
    register = sent(Register("a", None, batch=False, playout_deadline_s=3.0), behind_s=100.0)
    assert isinstance(register, Register)
    assert register.playout_deadline_s == 103.0
    chunk = pcm_chunk("a", 0, np.ones((2, 1), np.float32), final=True)
    output = sent(Output((chunk,)), behind_s=100.0)
    assert isinstance(output, Output)
    assert same(output.chunks, (chunk,))


def test_an_input_of_a_package_that_is_not_the_model_s_is_refused() -> None:
    message = bytearray(b"".join(encode_message(MESSAGES[0])))
    with pytest.raises(BrokenChannel, match="belongs to none of"):
        decode_message(message, {"another_package"})
    assert same(decode_message(message, packages=None), MESSAGES[0])


def test_any_change_of_a_message_is_refused_or_still_a_message() -> None:
    """Nothing but `BrokenChannel` comes of what was altered on its way."""
    chance = random.Random(1)
    refused = 0
    for number in range(3000):
        altered = bytearray(b"".join(encode_message(MESSAGES[number % len(MESSAGES)])))
        for _ in range(chance.randint(1, 4)):
            altered[chance.randrange(len(altered))] = chance.randrange(256)
        del altered[chance.randrange(len(altered)) + 1 :]
        try:
            decode_message(altered, OURS)
        except BrokenChannel:
            refused += 1
    assert refused > 1000
