"""The loop of a stage process, driven over real sockets around a scripted stage."""

from __future__ import annotations

import math
import socket
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from cantata.contract.data.chunks import Chunk, Codes, Milestone, Payload, Pcm
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.model.pipeline import CODES
from cantata.contract.process.messages import (
    Abort,
    Aborted,
    Extend,
    Failed,
    Output,
    StepMeasured,
)
from cantata.contract.process.stage import StepResult
from cantata.ipc.connectors import MemoryReceiver, MemorySender
from cantata.stages.process.exchange import UNLIMITED_CREDIT, FirstChunks
from cantata.stages.process.loop import StageLoop
from stage_chunks import codes_chunk
from stage_loops import (
    EchoInput,
    EchoStage,
    build_exchange,
    heartbeat,
    next_output,
    running_loop,
    samples,
)


def test_chunks_become_output_while_more_arrive() -> None:
    with running_loop() as harness:
        harness.register("a")
        harness.frames("a", 0, 1, 2)
        assert samples(harness.control.receive()) == [("a", 0, [1.0, 2.0], False)]
        harness.frames("a", 1, 3, final=True)
        assert samples(harness.control.receive()) == [("a", 1, [3.0], True)]


def test_a_stage_that_is_not_the_last_puts_its_chunks_on_its_edge() -> None:
    edge = MemoryReceiver()
    with running_loop(MemorySender(edge)) as harness:
        harness.register("a")
        harness.frames("a", 0, 1, 2, final=True)
        (chunk,) = edge.get()
        assert isinstance(chunk.payload, Pcm)
        assert (chunk.request_id, chunk.final) == ("a", True)
        assert chunk.payload.samples.tolist() == [[1.0], [2.0]]


class UndeclaredStage(EchoStage):
    """Makes frames for one request, sound for a port that it does not have for another, and numbers
    that are no samples for a third."""

    def step(self) -> StepResult:
        made = super().step()
        (chunk,) = made.chunks
        match chunk.request_id:
            case "frames":
                return StepResult([replace(chunk, payload=Codes(np.ones((1, 2), np.int32)))])
            case "port":
                return StepResult([replace(chunk, port="sound")])
            case "shape":
                return StepResult([replace(chunk, payload=Pcm(np.ones(3, np.float32)))])
        return made


def test_what_a_stage_does_not_declare_fails_its_request_only() -> None:
    with running_loop(stage=UndeclaredStage()) as harness:
        for request_id in ("frames", "port", "shape", "sound"):
            harness.register(request_id)
        errors = {}
        for request_id in ("frames", "port", "shape"):
            harness.frames(request_id, 0, 1)
            while not isinstance(message := harness.control.receive(), Failed):
                pass
            errors[message.request_id] = str(message.error)
        harness.frames("sound", 0, 3, final=True)
        assert samples(next_output(harness)) == [("sound", 0, [3.0], True)]
        assert harness.ask(1).counts["requests"] == 0
    assert errors == {
        "frames": "stage 'echo' made Codes for port 'pcm', which carries Pcm",
        "port": "stage 'echo' made a chunk for port 'sound'; its ports: ['pcm']",
        "shape": "stage 'echo' made Pcm for port 'pcm', but an array of float32, shape (3,), "
        "instead of float32, 2 axes",
    }


class PatientStage(EchoStage):
    """Holds what it receives for a while."""

    PATIENCE_S = 0.05

    def __init__(self) -> None:
        super().__init__()
        self.arrived_s = math.inf

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        super().receive(chunks)
        self.arrived_s = time.monotonic()

    def has_work(self) -> bool:
        return bool(self.pending) and time.monotonic() >= self.arrived_s + self.PATIENCE_S

    def get_due_in_s(self) -> float | None:
        due_s = self.arrived_s + self.PATIENCE_S
        return max(0.0, due_s - time.monotonic()) if self.pending else None


def test_a_stage_is_stepped_when_it_is_due_although_nothing_arrives() -> None:
    with running_loop(stage=PatientStage()) as harness:
        harness.register("a")
        for index in range(3):
            harness.frames("a", index, index, final=index == 2)
            assert samples(harness.output()) == [("a", index, [index], index == 2)]


def test_every_chunk_finds_its_request_however_the_sockets_race() -> None:
    with running_loop() as harness:
        for number in range(100):
            harness.register(str(number))
            harness.frames(str(number), 0, number, final=True)
        for number in range(100):
            assert samples(harness.output()) == [(str(number), 0, [number], True)]
        assert harness.stage.dropped == 0


def test_batch_mode_holds_output_and_an_abort_forgets_it() -> None:
    with running_loop(async_chunk=False) as harness:
        harness.register("a")
        harness.register("b")
        harness.frames("a", 0, 1)
        harness.frames("b", 0, 5)
        harness.frames("b", 1, 6, final=True)
        assert samples(harness.control.receive()) == [("b", 0, [5.0, 6.0], True)]
        # No client reads before the end, so nothing may wait for credit.
        assert harness.stage.credits == {"a": UNLIMITED_CREDIT, "b": UNLIMITED_CREDIT}
        assert harness.ask(1).counts == {"requests": 1, "held_chunks": 1}
        harness.control.send(Abort(("a", "unknown")))
        assert harness.control.receive() == Aborted(("a", "unknown"))
        assert harness.ask(2).counts == {"requests": 0, "held_chunks": 0}


def test_faults_are_reported_and_fail_only_their_request() -> None:
    with running_loop() as harness:
        harness.register("refused", EchoInput(refuse=True))
        refusal = harness.control.receive()
        assert isinstance(refusal, Failed)
        assert refusal.request_id == "refused"
        assert isinstance(refusal.error, InvalidRequest)
        assert refusal.error.param == "input"
        harness.register("bad")
        harness.register("good")
        harness.frames("bad", 0, -1, final=True)
        harness.frames("good", 0, 1, final=True)
        failure = harness.control.receive()
        assert isinstance(failure, Failed)
        assert failure.request_id == "bad"
        assert samples(harness.control.receive()) == [("good", 0, [1.0], True)]


def test_an_input_of_the_wrong_types_fails_its_request_alone() -> None:
    with running_loop() as harness:
        harness.register("wrong", EchoInput(codes="a text"))  # type: ignore[arg-type]
        failure = harness.control.receive()
        assert isinstance(failure, Failed)
        assert failure.request_id == "wrong"
        assert "codes is not of type" in failure.error.message
        harness.register("right")
        harness.frames("right", 0, 1, final=True)
        assert samples(harness.control.receive()) == [("right", 0, [1.0], True)]


def test_more_input_reaches_its_request() -> None:
    with running_loop() as harness:
        harness.register("a")
        harness.register("b")
        harness.control.send(Extend("a", EchoInput((1, 2), 0), final=False))
        assert samples(harness.control.receive()) == [("a", 0, [1.0, 2.0], False)]
        harness.control.send(Extend("b", EchoInput(refuse=True), final=True))
        refusal = harness.control.receive()
        assert isinstance(refusal, Failed)
        assert refusal.request_id == "b"
        harness.control.send(Extend("a", EchoInput((3,), 1), final=True))
        assert samples(harness.control.receive()) == [("a", 1, [3.0], True)]


def test_step_times_are_reported_only_when_they_change() -> None:
    with running_loop(step_s=0.6) as harness:
        harness.register("a")
        received: list[object] = []
        for number in range(20):
            harness.frames("a", number, number, final=number == 19)
            while not isinstance(message := harness.control.receive(), Output):
                received.append(message)
        [told] = received
        assert isinstance(told, StepMeasured)
        # The clock is read three times until a step ends: what comes before it counts too.
        assert told.cost.seconds(1) == pytest.approx(3 * 0.6)  # type: ignore[arg-type]


def test_a_requests_first_chunk_tells_when_it_left_each_stage() -> None:
    with running_loop(step_s=0.5) as harness:
        harness.register("a")
        rows, before = np.ones((1, 1), np.int32), Milestone("talker", 0.25)
        harness.upstream.put([codes_chunk("a", 0, rows, False, milestones=(before,))])
        first = harness.control.receive()
        harness.frames("a", 1, 2, final=True)
        second = next_output(harness)
    assert isinstance(first, Output)
    talker, echo = first.chunks[0].milestones
    assert talker == before
    assert (echo.step, echo.at_s > 0) == ("echo", True)
    assert second.chunks[0].milestones == ()


def test_nothing_is_remembered_of_a_request_that_ended_before_its_first_chunk() -> None:
    first_chunks = FirstChunks("decoder", [CODES])
    chunk = codes_chunk(
        "a", 0, np.ones((1, 1), np.int32), False, milestones=(Milestone("talker", 1.0),)
    )
    first_chunks.expect("a")
    first_chunks.take([chunk])
    first_chunks.forget("a")
    first_chunks.take([chunk])  # it was on its way
    bare = replace(chunk, milestones=())
    assert first_chunks.sign([bare], 2.0) == [bare]


def test_steps_are_counted() -> None:
    with running_loop(step_s=0.25) as harness:
        harness.register("a")
        for number in range(3):
            harness.frames("a", number, number, final=number == 2)
            next_output(harness)
        steps = harness.ask(1).steps
    assert steps.seconds.total == pytest.approx(0.75)
    assert sum(steps.seconds.counts) == 3
    assert steps.seconds.counts[bisect_left(steps.seconds.bounds, 0.25)] == 3
    assert steps.batch.total == 3


def test_draining_waits_for_what_is_registered() -> None:
    with running_loop() as harness:
        harness.register("a")
        harness.drain()
        harness.frames("a", 0, 1, final=True)
        assert samples(harness.control.receive()) == [("a", 0, [1.0], True)]


def test_the_loop_ends_when_the_server_is_gone() -> None:
    ours, theirs = socket.socketpair()
    loop = StageLoop(EchoStage(), build_exchange(theirs), heartbeat())
    ours.close()
    with pytest.raises(ConnectionError):
        loop.run()
