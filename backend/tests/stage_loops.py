"""A stage that echoes, and the loop that drives it in a thread of the test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import numpy as np

from cantata.contract.data.chunks import Chunk, Codes, Payload, Pcm
from cantata.contract.data.errors import InvalidRequest, RequestFailed
from cantata.contract.data.request import StageInput
from cantata.contract.model.pipeline import PCM, StageKind, StageSpec
from cantata.contract.process.messages import (
    Drained,
    DrainStage,
    Output,
    Ping,
    Pong,
    Register,
    StageCapacity,
    StepMeasured,
)
from cantata.contract.process.stage import StepResult, Working
from cantata.ipc.connectors import ChunkSender, SocketSender, listen, make_address
from cantata.ipc.shared_heartbeat import SharedHeartbeat, make_memory
from cantata.ipc.stage_messages import StageMessage, decode_message, encode_message
from cantata.ipc.wire import BlockingChannel
from cantata.stages.process.exchange import Exchange
from cantata.stages.process.loop import StageLoop
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
        playout_deadline_s: float | None = None,
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

    def get_due_in_s(self) -> float | None:
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

    def get_counts(self) -> Mapping[str, int]:
        return {"requests": len(self.requests)}

    def start_thread(self, working: Working) -> None:
        pass

    def close(self) -> None:
        pass


class ControlEnd:
    """The server's end of a control channel."""

    def __init__(self, sock: socket.socket) -> None:
        self._channel = BlockingChannel(sock)

    def send(self, message: StageMessage) -> None:
        self._channel.send(*encode_message(message))

    def receive(self) -> StageMessage:
        return decode_message(self._channel.receive())

    def close(self) -> None:
        self._channel.close()


class Harness:
    """The server's and the upstream stage's side of one loop."""

    def __init__(self, control: ControlEnd, upstream: SocketSender, stage: EchoStage) -> None:
        self.control = control
        self.upstream = upstream
        self.stage = stage
        self.draining = False

    def drain(self) -> None:
        if not self.draining:
            self.draining = True
            self.control.send(DrainStage())

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
        while isinstance(message := self.control.receive(), StepMeasured):
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
    address = make_address("edge")
    listener = listen(address)
    stage = stage or EchoStage()
    clock = count(step=step_s)
    edges, client_ports = ({PCM: outputs}, []) if outputs else ({}, [PCM])
    exchange = Exchange(
        ECHO, BlockingChannel(theirs), [listener], edges, client_ports, async_chunk=async_chunk
    )
    loop = StageLoop(stage, exchange, heartbeat(), lambda: next(clock))
    thread = threading.Thread(target=loop.run)
    thread.start()
    control, upstream = ControlEnd(ours), SocketSender(address)
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


def build_exchange(control: socket.socket, *listeners: socket.socket) -> Exchange:
    """Of a last stage."""
    return Exchange(ECHO, BlockingChannel(control), listeners, {}, [PCM], async_chunk=True)


def heartbeat() -> SharedHeartbeat:
    return SharedHeartbeat(make_memory(slots=4))


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
