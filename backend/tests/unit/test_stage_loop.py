"""The loop of a stage process, driven over real sockets around a scripted stage."""

from __future__ import annotations

import math
import socket
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import pytest

from cantata.connectors.base import ChunkSender
from cantata.connectors.memory import MemoryConnector
from cantata.connectors.socket import SocketSender, listen, new_address
from cantata.connectors.wire import BlockingChannel
from cantata.contract.data.chunks import Chunk, Codes, Milestone, Payload, Pcm
from cantata.contract.data.errors import InvalidRequest, RequestFailed
from cantata.contract.data.request import StageInput
from cantata.contract.model.pipeline import CODES, PCM, StageKind, StageSpec
from cantata.contract.process.messages import (
    Abort,
    Aborted,
    Drain,
    Drained,
    Extend,
    Failed,
    Measured,
    Output,
    Ping,
    Pong,
    Register,
    StageCapacity,
)
from cantata.contract.process.stage import StepResult, Working
from cantata.engine.process.exchange import UNLIMITED_CREDIT, Exchange
from cantata.engine.process.first_chunks import FirstChunks
from cantata.engine.process.loop import StageLoop
from cantata.engine.process.pulse import Pulse, make_memory
from stage_chunks import codes_chunk, pcm_chunk

ECHO = StageSpec("echo", StageKind.CODEC, "nowhere:decoder")


@dataclass(frozen=True)
class EchoInput:
    codes: tuple[int, ...] = ()
    index: int = 0
    refuse: bool = False


class EchoStage:
    """Turns each frame's first code into one sample; rejects payloads marked for it."""

    capacity = StageCapacity(slots=2, frame_period_s=1.0, sample_rate=1)
    reuse = None

    def __init__(self) -> None:
        self.requests: set[str] = set()
        self.pending: list[Chunk[Payload]] = []
        self.dropped = 0
        self.credits: dict[str, int] = {}

    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        runs_dry_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        if isinstance(payload, EchoInput) and payload.refuse:
            raise InvalidRequest("refused", "input")
        self.requests.add(request_id)

    def extend(self, request_id: str, payload: StageInput, *, final: bool) -> None:
        assert isinstance(payload, EchoInput)
        if payload.refuse:
            self.requests.discard(request_id)
            raise InvalidRequest("refused", "input")
        codes = np.array(payload.codes, np.int32).reshape(-1, 1)
        self.pending.append(codes_chunk(request_id, payload.index, codes, final))

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        known = [c for c in chunks if c.request_id in self.requests]
        self.dropped += len(chunks) - len(known)
        self.pending.extend(known)

    def credit(self, request_id: str, samples: int) -> None:
        self.credits[request_id] = samples

    def abort(self, request_id: str) -> None:
        self.requests.discard(request_id)
        self.pending = [c for c in self.pending if c.request_id != request_id]

    def has_work(self) -> bool:
        return bool(self.pending)

    def due_in_s(self) -> float | None:
        return None

    def step(self) -> StepResult:
        chunk = self.pending.pop(0)
        assert isinstance(chunk.payload, Codes)
        if chunk.final:
            self.requests.discard(chunk.request_id)
        if (chunk.payload.values < 0).any():
            return StepResult(failures=[(chunk.request_id, RequestFailed("negative code"))])
        samples = chunk.payload.values[:, :1].astype(np.float32)
        return StepResult([pcm_chunk(chunk.request_id, chunk.index, samples, chunk.final)])

    def counts(self) -> Mapping[str, int]:
        return {"requests": len(self.requests)}

    def start_thread(self, working: Working) -> None:
        pass

    def close(self) -> None:
        pass


class Harness:
    """The server's and the upstream stage's side of one loop."""

    def __init__(self, control: BlockingChannel, upstream: SocketSender, stage: EchoStage) -> None:
        self.control = control
        self.upstream = upstream
        self.stage = stage
        self.draining = False

    def drain(self) -> None:
        if not self.draining:
            self.draining = True
            self.control.send(Drain())

    def register(self, request_id: str, payload: StageInput | None = None) -> None:
        self.control.send(Register(request_id, payload, False))

    def ask(self, number: int) -> Pong:
        self.control.send(Ping(number))
        pong = self.control.receive()
        assert isinstance(pong, Pong)
        assert pong.number == number
        return pong

    def output(self) -> Output:
        """The next message; reports of the steps' cost may come before it."""
        while isinstance(message := self.control.receive(), Measured):
            pass
        assert isinstance(message, Output)
        return message

    def frames(self, request_id: str, index: int, *codes: int, final: bool = False) -> None:
        rows = np.array(codes, np.int32).reshape(-1, 1)
        self.upstream.put([codes_chunk(request_id, index, rows, final)])


@contextmanager
def running_loop(
    *outputs: ChunkSender,
    async_chunk: bool = True,
    step_s: float = 0.0,
    stage: EchoStage | None = None,
) -> Iterator[Harness]:
    """On a clock that is read before and after every step, which takes `step_s`. Without edges,
    the server gets the chunks."""
    ours, theirs = socket.socketpair()
    address = new_address("edge")
    listener = listen(address)
    stage = stage or EchoStage()
    clock = count(step=step_s)
    edges, client_ports = ({PCM: outputs}, []) if outputs else ({}, [PCM])
    exchange = Exchange(
        ECHO, BlockingChannel(theirs), [listener], edges, client_ports, async_chunk=async_chunk
    )
    loop = StageLoop(stage, exchange, pulse(), lambda: next(clock))
    thread = threading.Thread(target=loop.run)
    thread.start()
    control, upstream = BlockingChannel(ours), SocketSender(address)
    harness = Harness(control, upstream, stage)
    try:
        yield harness
        harness.drain()
        assert control.receive() == Drained()
    finally:
        control.close()
        upstream.close()
        thread.join(60)
        assert not thread.is_alive()


def exchange_of(control: socket.socket, *listeners: socket.socket) -> Exchange:
    """Of a last stage."""
    return Exchange(ECHO, BlockingChannel(control), listeners, {}, [PCM], async_chunk=True)


def pulse() -> Pulse:
    return Pulse(make_memory(slots=4))


def samples(message: object) -> list[tuple[str, int, list[float], bool]]:
    assert isinstance(message, Output)
    made = [(chunk, chunk.payload) for chunk in message.chunks]
    return [
        (chunk.request_id, chunk.index, sound.samples[:, 0].tolist(), chunk.final)
        for chunk, sound in made
        if isinstance(sound, Pcm)
    ]


def next_output(harness: Harness) -> Output:
    while not isinstance(message := harness.control.receive(), Output):
        pass
    return message


def test_chunks_become_output_while_more_arrive() -> None:
    with running_loop() as harness:
        harness.register("a")
        harness.frames("a", 0, 1, 2)
        assert samples(harness.control.receive()) == [("a", 0, [1.0, 2.0], False)]
        harness.frames("a", 1, 3, final=True)
        assert samples(harness.control.receive()) == [("a", 1, [3.0], True)]


def test_a_stage_that_is_not_the_last_puts_its_chunks_on_its_edge() -> None:
    edge = MemoryConnector()
    with running_loop(edge) as harness:
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

    def due_in_s(self) -> float | None:
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
        assert isinstance(told, Measured)
        # The clock is read three times until a step ends: what comes before it counts too.
        assert told.cost.seconds(1) == pytest.approx(3 * 0.6)


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
    loop = StageLoop(EchoStage(), exchange_of(theirs), pulse())
    ours.close()
    with pytest.raises(ConnectionError):
        loop.run()


class SpeakingStage(EchoStage):
    """In the middle of speaking; records the order of calls. By its clock only taking in a request
    takes any time."""

    def __init__(self, frames: int, intake_s: float = 0.0) -> None:
        super().__init__()
        self.intake_s, self.now_s = intake_s, 0.0
        codes = np.ones((1, 1), np.int32)
        self.pending = [codes_chunk("speaker", index, codes, False) for index in range(frames)]
        self.calls: list[str] = []

    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        runs_dry_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        self.calls.append(request_id)
        self.now_s += self.intake_s

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        self.calls.append("chunks")

    def step(self) -> StepResult:
        self.calls.append("step")
        return super().step()


@pytest.mark.parametrize(
    ("intake_s", "calls"),
    [
        (1.0, ["n0", "step", "n1", "step", "n2"]),
        (0.15, ["n0", "n1", "step", "n2"]),
        (0.0, ["n0", "n1", "n2", "step"]),
    ],
)
def test_new_requests_do_not_delay_running_streams(intake_s: float, calls: list[str]) -> None:
    """A frame lasts a second."""
    ours, theirs = socket.socketpair()
    control, stage = BlockingChannel(ours), SpeakingStage(9, intake_s)
    for number in range(3):
        control.send(Register(f"n{number}", None, False))
    control.send(Drain())
    StageLoop(stage, exchange_of(theirs), pulse(), lambda: stage.now_s).run()
    assert stage.calls[: len(calls)] == calls
    control.close()


def test_new_requests_precede_streams_with_sound_left_and_aborted_ones_are_skipped() -> None:
    """Taking in a request lasts as long as a frame: one between two steps."""
    ours, theirs = socket.socketpair()
    control, stage = BlockingChannel(ours), SpeakingStage(9, intake_s=1.0)
    control.send(Register("next piece", None, False, runs_dry_s=1000.0))
    control.send(Register("gone", None, False))
    control.send(Register("new", None, False))
    control.send(Abort(("gone",)))
    control.send(Drain())
    StageLoop(stage, exchange_of(theirs), pulse(), lambda: stage.now_s).run()
    assert [call for call in stage.calls if call != "step"] == ["new", "next piece"]
    assert stage.calls[:3] == ["new", "step", "next piece"]
    control.close()


def test_all_chunks_that_have_arrived_are_there_for_the_next_step() -> None:
    """A stage slower than the one before it must find a new stream's chunk behind all others."""
    ours, theirs = socket.socketpair()
    control, stage = BlockingChannel(ours), SpeakingStage(frames=1)
    address = new_address("edge")
    listener, upstream = listen(address), SocketSender(address)
    for index in range(5):
        upstream.put([codes_chunk("speaker", index, np.ones((1, 1), np.int32), False)])
    control.send(Drain())
    StageLoop(stage, exchange_of(theirs, listener), pulse()).run()
    assert stage.calls == ["chunks"] * 5 + ["step"]
    control.close()
    upstream.close()
