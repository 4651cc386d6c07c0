"""What would carry a link's chunks: the link itself, gRPC's streams, ZeroMQ's sockets.

    python -m cantata_bench.cluster.transports

One process sends each stream's chunks at a voice's pace, another takes them; then the same as fast
as both can. Each encodes and checks the same message, and moves its body: gRPC on one bidirectional
stream of HTTP/2 for each of ours (`grpc.aio`, no protobuf), ZeroMQ from a ROUTER to one DEALER,
with the stream's number in a part of its own. `docs/decisions/transport.md` has the figures.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import grpc.aio
import numpy as np
import psutil
import uvloop
import zmq.asyncio

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
from cantata_bench.cluster.connectors import PERIOD_S, SAMPLES, CarriedLoad

PATIENCE_S = 60.0
METHOD = "/cantata.Link/Speak"
_SOUND = np.zeros((SAMPLES, 1), np.float32)

Put = Callable[[int, tuple[Any, ...]], Awaitable[None]]
"""Sends the parts of a body on a stream."""
Latencies = list[float]


@dataclass(frozen=True, slots=True)
class Transported:
    """Measurements of one transport."""

    name: str
    latency_p50_s: float
    latency_p99_s: float
    sender_cpu_s: float
    """CPU time per chunk at a voice's pace, as in `receiver_cpu_s`."""
    receiver_cpu_s: float
    chunks_per_s: float
    """As fast as both can."""
    sender_bytes: int
    """Memory of the sending process that no other one has."""


@dataclass(frozen=True, slots=True)
class _Run:
    latencies: Latencies
    wall_s: float
    sender_cpu_s: float
    receiver_cpu_s: float
    sender_bytes: int


async def _send_all(put: Put, pace: CarriedLoad, period_s: float) -> None:
    """Every stream's chunks; the streams are spread over a period."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()

    async def one(number: int) -> None:
        for index in range(pace.chunks):
            if period_s:
                due_s = began_s + period_s * (index + number / pace.streams)
                await asyncio.sleep(due_s - loop.time())
            word = SpokenWord(0, 0, time.monotonic(), 0.0)
            await put(number, encode(SoundMessage(_SOUND, (word,))))

    await asyncio.gather(*map(one, range(pace.streams)))


def _read_latency(body: bytearray) -> float:
    return time.monotonic() - decode(body, SoundMessage).words[0].start_s


async def _send_over_link(telling: Connection, pace: CarriedLoad, period_s: float) -> None:
    with listen(Address("127.0.0.1", 0)) as listener:
        telling.send(get_address(listener).port)
        heartbeat, streams = Heartbeat(), list[LinkStream]()
        sock, _ = await asyncio.get_running_loop().sock_accept(listener)
        await shake_hands(sock, LinkSide.ACCEPTED, NO_KEY)
        link = Link(sock, LinkSide.ACCEPTED, heartbeat, "bench", on_stream=streams.append)
        link.begin()
        while len(streams) < pace.streams:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await _send_all(
            lambda number, parts: streams[number].send(FrameKind.SOUND, *parts), pace, period_s
        )
        await link.wait_until_lost()
        heartbeat.close()


async def _receive_over_link(port: int, pace: CarriedLoad) -> Latencies:
    heartbeat, latencies = Heartbeat(), Latencies()
    sock = await connect(Address("127.0.0.1", port), NO_KEY)
    link = Link(sock, LinkSide.CONNECTED, heartbeat, "bench")
    link.begin()

    async def one() -> None:
        stream = link.open()
        stream.post(FrameKind.SPEAK, b"begin")
        for _ in range(pace.chunks):
            frame = await stream.receive()
            assert frame is not None
            latencies.append(_read_latency(frame.body))

    await asyncio.gather(*(one() for _ in range(pace.streams)))
    link.close()
    heartbeat.close()
    return latencies


async def _send_over_grpc(telling: Connection, pace: CarriedLoad, period_s: float) -> None:
    contexts: list[grpc.aio.ServicerContext[bytes, bytes]] = []
    over = asyncio.Event()

    async def speak(requests: object, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        contexts.append(context)
        await over.wait()

    server = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(speak)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("cantata.Link", {"Speak": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    telling.send(port)
    while len(contexts) < pace.streams:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    await _send_all(lambda number, parts: contexts[number].write(b"".join(parts)), pace, period_s)
    over.set()
    await server.stop(1.0)


async def _receive_over_grpc(port: int, pace: CarriedLoad) -> Latencies:
    latencies = Latencies()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:

        async def one() -> None:
            call = channel.stream_stream(METHOD)()
            await call.write(b"begin")
            for _ in range(pace.chunks):
                latencies.append(_read_latency(bytearray(await call.read())))

        await asyncio.gather(*(one() for _ in range(pace.streams)))
    return latencies


async def _send_over_zmq(telling: Connection, pace: CarriedLoad, period_s: float) -> None:
    with zmq.asyncio.Context() as context, context.socket(zmq.ROUTER) as router:
        # WHY: else a router drops what a slow peer has no room for, without a word.
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        telling.send(router.bind_to_random_port("tcp://127.0.0.1"))
        edge, _ = await router.recv_multipart()

        async def put(number: int, parts: tuple[Any, ...]) -> None:
            await router.send_multipart([edge, number.to_bytes(4, "big"), *parts])

        await _send_all(put, pace, period_s)
        await router.recv_multipart()


async def _receive_over_zmq(port: int, pace: CarriedLoad) -> Latencies:
    latencies = Latencies()
    with zmq.asyncio.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.connect(f"tcp://127.0.0.1:{port}")
        await dealer.send(b"begin")
        for _ in range(pace.total):
            _, *parts = await dealer.recv_multipart()
            latencies.append(_read_latency(bytearray().join(parts)))
        await dealer.send(b"end")
    return latencies


Sender = Callable[[Connection, CarriedLoad, float], Coroutine[Any, Any, None]]
Receiver = Callable[[int, CarriedLoad], Coroutine[Any, Any, Latencies]]
TRANSPORTS: dict[str, tuple[Sender, Receiver]] = {
    "link (own)": (_send_over_link, _receive_over_link),
    "gRPC": (_send_over_grpc, _receive_over_grpc),
    "ZeroMQ": (_send_over_zmq, _receive_over_zmq),
}


def _run_sender(name: str, telling: Connection, pace: CarriedLoad, period_s: float) -> None:
    async def send() -> None:
        before_s = time.process_time()
        await TRANSPORTS[name][0](telling, pace, period_s)
        used_s = time.process_time() - before_s
        telling.send((used_s, psutil.Process().memory_full_info().uss))

    uvloop.run(send())


def _run(name: str, pace: CarriedLoad, period_s: float) -> _Run:
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe()
    process = spawning.Process(target=_run_sender, args=(name, there, pace, period_s))
    process.start()
    try:
        port = _receive_notice(here)
        before_s, began_s = time.process_time(), time.monotonic()
        latencies = uvloop.run(TRANSPORTS[name][1](port, pace))
        wall_s, used_s = time.monotonic() - began_s, time.process_time() - before_s
        sender_s, sender_bytes = _receive_notice(here)
        return _Run(latencies, wall_s, sender_s, used_s, sender_bytes)
    finally:
        process.kill()
        process.join(PATIENCE_S)


def _receive_notice(sender: Connection) -> Any:
    if not sender.poll(PATIENCE_S):
        raise RuntimeError(f"the sender said nothing for {PATIENCE_S:g} s")
    return sender.recv()


def measure_transports(pace: CarriedLoad, rounds: int) -> list[Transported]:
    """All of them, in turns; medians of so many rounds."""
    runs: dict[str, list[tuple[_Run, _Run]]] = {name: [] for name in TRANSPORTS}
    for number in range(rounds):
        for name in list(TRANSPORTS)[:: -1 if number % 2 else 1]:
            runs[name].append((_run(name, pace, PERIOD_S), _run(name, pace, 0.0)))
    return [_summarize(name, found, pace) for name, found in runs.items()]


def _summarize(name: str, found: Sequence[tuple[_Run, _Run]], pace: CarriedLoad) -> Transported:
    paced = [one for one, _ in found]
    return Transported(
        name,
        median(median(one.latencies) for one in paced),
        median(float(np.percentile(one.latencies, 99)) for one in paced),
        median(one.sender_cpu_s for one in paced) / pace.total,
        median(one.receiver_cpu_s for one in paced) / pace.total,
        median(pace.total / fast.wall_s for _, fast in found),
        round(median(one.sender_bytes for one in paced)),
    )


def transports_table(found: Sequence[Transported]) -> str:
    """A table with one row for each transport."""
    rows = [
        "| transport | latency p50 / p99 | CPU a chunk, sender | receiver | chunks/s at most "
        "| sender's own memory |",
        "|-|-|-|-|-|-|",
    ]
    rows += [
        f"| {one.name} | {1e3 * one.latency_p50_s:.2f} / {1e3 * one.latency_p99_s:.2f} ms "
        f"| {1e3 * one.sender_cpu_s:.2f} ms | {1e3 * one.receiver_cpu_s:.2f} ms "
        f"| {one.chunks_per_s:.0f} | {one.sender_bytes / (1 << 20):.0f} MiB |"
        for one in found
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    print(transports_table(measure_transports(CarriedLoad(streams=16, chunks=100), rounds=3)))
