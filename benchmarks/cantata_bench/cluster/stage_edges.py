"""An edge between two stages: over a Unix socket, and over a link, as between two machines.

A spawned process sends as a talker does, a message a step with a frame of each stream, and this one
receives as a codec does. In between stand, for the link, the two processes that relay: a server's
part and a stage host's. All run on one machine, whose monotonic clock they read.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from statistics import median
from typing import Any, cast

import numpy as np
import uvloop

from cantata.contract.data.chunks import Chunk, Codes, WordTiming
from cantata.distributed.address import Address
from cantata.distributed.key import NO_KEY
from cantata.distributed.link.connecting import connect, get_address, listen, shake_hands
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.link import Link
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.stages.messages import StageFrameKind
from cantata.distributed.stages.transfer import forward_chunks, send_chunks
from cantata.distributed.stages.unix_edges import EarlyChunkBuffer, UnixEdgeWriter, relay_from
from cantata.ipc import connectors as local
from cantata_bench.cluster.connectors import PERIOD_S, CarriedLoad

CODEBOOKS = 16
PATIENCE_S = 30.0
_FRAME = np.zeros((1, CODEBOOKS), np.int32)


@dataclass(frozen=True, slots=True)
class EdgeCost:
    """Measurements of one way to carry frames from stage to stage."""

    name: str
    latency_s: float
    """p50, from handing a step's frames over to having them."""
    relay_cpu_s: tuple[float, ...]
    """CPU time per chunk in each process that relays: in the server and on the host."""


def measure_edges(pace: CarriedLoad) -> list[EdgeCost]:
    """Each way, one after the other."""
    return [_measure_unix(pace), _measure_link(pace)]


def _measure_unix(pace: CarriedLoad) -> EdgeCost:
    address = local.make_address("bench")
    with local.listen(address) as listener, ExitStack() as stack:
        _begin(stack, _send, pace, address)
        return EdgeCost("Unix socket", median(_receive_steps(listener, pace)), ())


def _measure_link(pace: CarriedLoad) -> EdgeCost:
    near, far = local.make_address("bench-near"), local.make_address("bench-far")
    with (
        local.listen(far) as end,
        local.listen(near) as start,
        listen(Address("127.0.0.1", 0)) as between,
        ExitStack() as stack,
    ):
        relays = [
            _begin(stack, _relay_far, between, far, pace.streams),
            _begin(stack, _relay_near, start, get_address(between)),
        ]
        for relay in relays:
            assert _receive_notice(relay) == "ready"
        _begin(stack, _send, pace, near)
        latencies = _receive_steps(end, pace)
        for relay in relays:
            relay.send("end")
        far_s, near_s = (cast(float, _receive_notice(relay)) / pace.total for relay in relays)
    return EdgeCost("over a link", median(latencies), (near_s, far_s))


def _begin(stack: ExitStack, work: Callable[..., None], *arguments: object) -> Connection:
    """Run it in a process of its own, which is ended with the stack."""
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe()
    process = spawning.Process(target=work, args=(there, *arguments))
    process.start()
    stack.callback(process.kill)
    stack.callback(process.join, PATIENCE_S)
    return here


def _receive_notice(relay: Connection) -> object:
    if not relay.poll(PATIENCE_S):
        raise RuntimeError(f"a process that relays said nothing for {PATIENCE_S:g} s")
    return relay.recv()


def _send(_: Connection, pace: CarriedLoad, address: str) -> None:
    sender = local.SocketSender(address)
    began_s = time.monotonic()
    for step in range(pace.chunks):
        time.sleep(max(0.0, began_s + step * PERIOD_S - time.monotonic()))
        sent = Codes(_FRAME, words=(WordTiming(0, time.monotonic(), 0.0),))
        payloads = [sent, *[Codes(_FRAME)] * (pace.streams - 1)]
        sender.put([Chunk(f"r{n}", "codes", step, one, False) for n, one in enumerate(payloads)])
    sender.close()


def _receive_steps(listener: socket.socket, pace: CarriedLoad) -> list[float]:
    """Latencies of all steps."""
    listener.settimeout(PATIENCE_S)
    receiver = local.SocketReceiver(listener)
    latencies = []
    for _ in range(pace.chunks):
        frames = cast(Codes, receiver.get()[0].payload)
        latencies.append(time.monotonic() - frames.words[0].start_s)
    receiver.close()
    return latencies


def _relay_near(telling: Connection, start: socket.socket, address: Address) -> None:
    async def relay() -> None:
        heartbeat = Heartbeat()
        link = Link(await connect(address, NO_KEY), LinkSide.CONNECTED, heartbeat, "bench")
        link.begin()
        stream = link.open()
        stream.post(StageFrameKind.EDGE_THERE, b"")
        await _relay_timed(telling, relay_from(start, partial(send_chunks, stream)))
        link.close()
        heartbeat.close()

    uvloop.run(relay())


def _relay_far(telling: Connection, listener: socket.socket, far: str, streams: int) -> None:
    async def relay() -> None:
        heartbeat, opened = Heartbeat(), asyncio.get_running_loop().create_future()
        sock, _ = await asyncio.get_running_loop().sock_accept(listener)
        await shake_hands(sock, LinkSide.ACCEPTED, NO_KEY)
        link = Link(sock, LinkSide.ACCEPTED, heartbeat, "bench", on_stream=opened.set_result)
        link.begin()
        stream: LinkStream = await opened
        await stream.receive()
        early_chunks = EarlyChunkBuffer(UnixEdgeWriter(far).put)
        for number in range(streams):
            early_chunks.registered(f"r{number}")
        await _relay_timed(telling, forward_chunks(stream, early_chunks.put))
        link.close()
        heartbeat.close()

    listener.setblocking(False)
    uvloop.run(relay())


async def _relay_timed(telling: Connection, work: Coroutine[Any, Any, None]) -> None:
    """Relay until told to end; then say how much processor time it took."""
    working = asyncio.create_task(work)
    telling.send("ready")
    before_s = time.process_time()
    await asyncio.to_thread(telling.recv)
    telling.send(time.process_time() - before_s)
    working.cancel()
    await asyncio.wait({working})
