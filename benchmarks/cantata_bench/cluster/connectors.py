"""Sound from one process to another: over a link, and over the Unix sockets of one machine.

Both move the same chunks at a voice's pace from a spawned process to this one, on one machine,
whose monotonic clock both processes read.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from statistics import median
from typing import Any, cast

import numpy as np
import uvloop

from cantata.contract.data.chunks import Chunk, Pcm, WordTiming
from cantata.contract.service import SpokenWord
from cantata.distributed.address import Address
from cantata.distributed.key import NO_KEY
from cantata.distributed.link.connecting import connect, get_address, listen, shake_hands
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.link import Link
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.messages import FrameKind, SoundMessage
from cantata.distributed.serialization import decode, encode
from cantata.ipc.encoded import EncodedChunks
from cantata.ipc.wire import AsyncChannel

PERIOD_S = 0.08
SAMPLES = 1_920
"""Samples of a chunk: 80 ms at 24 kHz."""
_SOUND = np.zeros((SAMPLES, 1), np.float32)


@dataclass(frozen=True, slots=True)
class Carried:
    """Measurements of one way to carry sound."""

    name: str
    latency_s: float
    """p50, from handing a chunk over to having it."""
    sender_cpu_s: float
    """CPU time per chunk, as in `receiver_cpu_s`."""
    receiver_cpu_s: float


@dataclass(frozen=True, slots=True)
class CarriedLoad:
    """How much is carried."""

    streams: int
    chunks: int
    """Number of chunks of each stream."""

    @property
    def total(self) -> int:
        """Chunks."""
        return self.streams * self.chunks


Send = Callable[[Connection, CarriedLoad, socket.socket], None]


def measure_connectors(pace: CarriedLoad) -> list[Carried]:
    """Each connector, one after the other."""
    near, far = socket.socketpair()
    with near, far:
        unix = _measure_connector(
            "Unix socket", _send_over_socket, pace, far, _receive_from_socket(near, pace)
        )
    with listen(Address("127.0.0.1", 0)) as listener:
        address = get_address(listener)
        link = _measure_connector(
            "link (TCP)", _send_over_link, pace, listener, _receive_from_link(address, pace)
        )
    return [unix, link]


def _measure_connector(
    name: str,
    send: Send,
    pace: CarriedLoad,
    where: socket.socket,
    receive: Coroutine[Any, Any, list[float]],
) -> Carried:
    with _start_sender(send, pace, where) as receiver:
        assert receiver.recv() == "ready"
        before_s = time.process_time()
        latencies = uvloop.run(receive)
        receiver_s = time.process_time() - before_s
        sender_s = receiver.recv()
    return Carried(name, median(latencies), sender_s / pace.total, receiver_s / pace.total)


@contextmanager
def _start_sender(send: Send, pace: CarriedLoad, where: socket.socket) -> Iterator[Connection]:
    spawning = multiprocessing.get_context("spawn")
    receiver, sender = spawning.Pipe()
    process = spawning.Process(target=send, args=(sender, pace, where))
    process.start()
    try:
        yield receiver
    finally:
        process.join(10)
        process.kill()


def _send_over_socket(sender: Connection, pace: CarriedLoad, sock: socket.socket) -> None:
    async def send() -> None:
        channel = await AsyncChannel.open(sock)
        sender.send("ready")
        await channel.receive()

        async def one(number: int) -> None:
            async for index in _pace_chunks(number, pace):
                timing = WordTiming(0, time.monotonic(), 0.0)
                chunk = Chunk(f"r{number}", "pcm", index, Pcm(_SOUND, (timing,)), False)
                await channel.send(*EncodedChunks.of([chunk]).parts)

        before_s = time.process_time()
        await asyncio.gather(*map(one, range(pace.streams)))
        sender.send(time.process_time() - before_s)
        await channel.close()

    uvloop.run(send())


async def _receive_from_socket(sock: socket.socket, pace: CarriedLoad) -> list[float]:
    channel = await AsyncChannel.open(sock)
    await channel.send(b"begin")
    latencies: list[float] = []
    while len(latencies) < pace.total:
        for chunk in EncodedChunks.from_local(await channel.receive()).chunks():
            received = cast(Pcm, chunk.payload)
            latencies.append(time.monotonic() - received.words[0].start_s)
    await channel.close()
    return latencies


def _send_over_link(sender: Connection, pace: CarriedLoad, listener: socket.socket) -> None:
    async def send() -> None:
        sender.send("ready")
        heartbeat, streams = Heartbeat(), list[LinkStream]()
        sock, _ = await asyncio.get_running_loop().sock_accept(listener)
        await shake_hands(sock, LinkSide.ACCEPTED, NO_KEY)
        link = Link(sock, LinkSide.ACCEPTED, heartbeat, "bench", on_stream=streams.append)
        link.begin()
        while len(streams) < pace.streams:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

        async def one(number: int) -> None:
            stream = streams[number]
            async for _ in _pace_chunks(number, pace):
                word = SpokenWord(0, 0, time.monotonic(), 0.0)
                await stream.send(FrameKind.SOUND, *encode(SoundMessage(_SOUND, (word,))))

        before_s = time.process_time()
        await asyncio.gather(*map(one, range(pace.streams)))
        sender.send(time.process_time() - before_s)
        await link.wait_until_lost()
        heartbeat.close()

    listener.setblocking(False)
    uvloop.run(send())


async def _receive_from_link(address: Address, pace: CarriedLoad) -> list[float]:
    heartbeat = Heartbeat()
    link = Link(await connect(address, NO_KEY), LinkSide.CONNECTED, heartbeat, "bench")
    link.begin()
    latencies: list[float] = []

    async def one() -> None:
        stream = link.open()
        await stream.send(FrameKind.SPEAK, b"begin")
        for _ in range(pace.chunks):
            frame = await stream.receive()
            assert frame is not None
            sound = decode(frame.body, SoundMessage)
            latencies.append(time.monotonic() - sound.words[0].start_s)

    await asyncio.gather(*(one() for _ in range(pace.streams)))
    link.close()
    heartbeat.close()
    return latencies


async def _pace_chunks(number: int, pace: CarriedLoad) -> AsyncGenerator[int, None]:
    """A chunk's number whenever it is due; the streams are spread over a period."""
    loop = asyncio.get_running_loop()
    began_s = loop.time() + PERIOD_S * number / pace.streams
    for index in range(pace.chunks):
        await asyncio.sleep(began_s + index * PERIOD_S - loop.time())
        yield index
