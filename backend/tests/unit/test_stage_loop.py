"""The loop of a stage process, driven over real sockets around a scripted stage."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from cantata.connectors.base import ChunkSender
from cantata.connectors.memory import MemoryConnector
from cantata.connectors.socket import SocketSender, listen
from cantata.connectors.wire import BlockingChannel
from cantata.contract.chunks import Chunk, FrameChunk, PcmChunk
from cantata.contract.errors import InvalidRequest, RequestFailed
from cantata.contract.messages import (
    Abort,
    Aborted,
    Drain,
    Drained,
    Failed,
    Output,
    Ping,
    Pong,
    Register,
    StageCapacity,
    Sustains,
)
from cantata.contract.request import Payload
from cantata.contract.stage import StepResult
from cantata.engine.stage_process import UNLIMITED_CREDIT, StageLoop


class EchoStage:
    """Turns each frame's first code into one sample; refuses payloads that say so."""

    capacity = StageCapacity(slots=2, frame_period_s=1.0, sample_rate=1)

    def __init__(self) -> None:
        self.requests: set[str] = set()
        self.pending: list[Chunk] = []
        self.dropped = 0
        self.credits: dict[str, int] = {}

    def add(self, request_id: str, payload: Payload | None, *, batch: bool) -> None:
        if payload and payload.get("refuse"):
            raise InvalidRequest("refused", "input")
        self.requests.add(request_id)

    def receive(self, chunks: Sequence[Chunk]) -> None:
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

    def step(self) -> StepResult:
        chunk = self.pending.pop(0)
        assert isinstance(chunk, FrameChunk)
        if chunk.final:
            self.requests.discard(chunk.request_id)
        if (chunk.codes < 0).any():
            return StepResult(failures=[(chunk.request_id, RequestFailed("negative code"))])
        samples = chunk.codes[:, 0].astype(np.float32)
        return StepResult([PcmChunk(chunk.request_id, chunk.index, samples, chunk.final)])

    def counts(self) -> Mapping[str, int]:
        return {"requests": len(self.requests)}

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

    def register(self, request_id: str, payload: Payload | None = None) -> None:
        self.control.send(Register(request_id, payload, False))

    def frames(self, request_id: str, index: int, *codes: int, final: bool = False) -> None:
        rows = np.array(codes, np.int32).reshape(-1, 1)
        self.upstream.put([FrameChunk(request_id, index, rows, final)])


@contextmanager
def running_loop(
    folder: Path, *outputs: ChunkSender, async_chunk: bool = True, step_s: float = 0.0
) -> Iterator[Harness]:
    """On a clock that is read before and after every step, which takes `step_s`."""
    ours, theirs = socket.socketpair()
    listener = listen(folder / "edge")
    stage = EchoStage()
    clock = count(step=step_s)
    loop = StageLoop(
        stage, BlockingChannel(theirs), [listener], outputs, async_chunk, lambda: next(clock)
    )
    thread = threading.Thread(target=loop.run)
    thread.start()
    control, upstream = BlockingChannel(ours), SocketSender(folder / "edge")
    harness = Harness(control, upstream, stage)
    try:
        yield harness
        harness.drain()
        assert control.receive() == Drained()
    finally:
        control.close()
        upstream.close()
        thread.join(10)
        assert not thread.is_alive()


def samples(message: object) -> list[tuple[str, int, list[float], bool]]:
    assert isinstance(message, Output)
    return [(c.request_id, c.index, c.samples.tolist(), c.final) for c in message.chunks]


def test_chunks_become_output_while_more_arrive(tmp_path: Path) -> None:
    with running_loop(tmp_path) as harness:
        harness.register("a")
        harness.frames("a", 0, 1, 2)
        assert samples(harness.control.receive()) == [("a", 0, [1.0, 2.0], False)]
        harness.frames("a", 1, 3, final=True)
        assert samples(harness.control.receive()) == [("a", 1, [3.0], True)]


def test_a_stage_that_is_not_the_last_puts_its_chunks_on_its_edge(tmp_path: Path) -> None:
    edge = MemoryConnector()
    with running_loop(tmp_path, edge) as harness:
        harness.register("a")
        harness.frames("a", 0, 1, 2, final=True)
        (chunk,) = edge.get()
        assert isinstance(chunk, PcmChunk)
        assert (chunk.request_id, chunk.samples.tolist(), chunk.final) == ("a", [1.0, 2.0], True)


def test_every_chunk_finds_its_request_however_the_sockets_race(tmp_path: Path) -> None:
    with running_loop(tmp_path) as harness:
        for number in range(100):
            harness.register(str(number))
            harness.frames(str(number), 0, number, final=True)
        for number in range(100):
            assert samples(harness.control.receive()) == [(str(number), 0, [number], True)]
        assert harness.stage.dropped == 0


def test_batch_mode_holds_output_and_an_abort_forgets_it(tmp_path: Path) -> None:
    with running_loop(tmp_path, async_chunk=False) as harness:
        harness.register("a")
        harness.register("b")
        harness.frames("a", 0, 1)
        harness.frames("b", 0, 5)
        harness.frames("b", 1, 6, final=True)
        assert samples(harness.control.receive()) == [("b", 0, [5.0, 6.0], True)]
        # Nobody listens until the end, so nothing may wait for a listener's credit.
        assert harness.stage.credits == {"a": UNLIMITED_CREDIT, "b": UNLIMITED_CREDIT}
        harness.control.send(Ping(1))
        assert harness.control.receive() == Pong(1, {"requests": 1, "held_chunks": 1})
        harness.control.send(Abort(("a", "unknown")))
        assert harness.control.receive() == Aborted(("a", "unknown"))
        harness.control.send(Ping(2))
        assert harness.control.receive() == Pong(2, {"requests": 0, "held_chunks": 0})


def test_faults_are_told_and_stay_with_their_request(tmp_path: Path) -> None:
    with running_loop(tmp_path) as harness:
        harness.register("refused", {"refuse": True})
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


def test_a_stage_that_is_too_slow_for_all_its_slots_says_so_once(tmp_path: Path) -> None:
    """A step takes 0.6 s for a frame of 1 s, so one listener hears no gap and two would."""
    with running_loop(tmp_path, step_s=0.6) as harness:
        harness.register("a")
        received = []
        for number in range(20):
            harness.frames("a", number, number, final=number == 19)
            while not isinstance(message := harness.control.receive(), Output):
                received.append(message)
        assert received == [Sustains(1)]


def test_draining_waits_for_what_is_registered(tmp_path: Path) -> None:
    with running_loop(tmp_path) as harness:
        harness.register("a")
        harness.drain()
        harness.frames("a", 0, 1, final=True)
        assert samples(harness.control.receive()) == [("a", 0, [1.0], True)]


def test_the_loop_ends_when_the_server_is_gone(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    loop = StageLoop(EchoStage(), BlockingChannel(theirs), [], [], True)
    ours.close()
    with pytest.raises(ConnectionError):
        loop.run()
