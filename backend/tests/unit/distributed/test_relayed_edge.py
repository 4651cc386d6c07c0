"""An edge between stages on two machines: from one stage's socket over a link to the other's."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import numpy as np
import pytest

from alike import same
from cantata.contract.data.chunks import Chunk, Codes, Milestone, Payload, WordTiming
from cantata.distributed.link.errors import ProtocolError
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.link import Link
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.stages.messages import StageFrameKind
from cantata.distributed.stages.transfer import forward_chunks, send_chunks
from cantata.distributed.stages.unix_edges import EarlyChunkBuffer, UnixEdgeWriter, relay_from
from cantata.ipc.connectors import SocketReceiver, SocketSender, listen, make_address
from cantata.ipc.encoded import EncodedChunks
from cantata.ipc.serialization import encode

LIMIT_S = 20.0


@asynccontextmanager
async def linked() -> AsyncIterator[tuple[LinkStream, LinkStream]]:
    """Both ends of a stream over a link."""
    heartbeat, arrived = Heartbeat(0.02), asyncio.get_running_loop().create_future()
    ours, theirs = socket.socketpair()
    for sock in (ours, theirs):
        sock.setblocking(False)
    near = Link(ours, LinkSide.CONNECTED, heartbeat, "far")
    far = Link(theirs, LinkSide.ACCEPTED, heartbeat, "near", on_stream=arrived.set_result)
    near.begin()
    far.begin()
    try:
        stream = near.open()
        stream.post(StageFrameKind.EDGE_THERE, b"")
        async with asyncio.timeout(LIMIT_S):
            other = await arrived
            await other.receive()
            yield stream, other
    finally:
        near.close()
        far.close()
        heartbeat.close()


async def test_chunks_cross_two_relays_as_they_were() -> None:
    chunks: list[Chunk[Payload]] = [
        Chunk(
            "early",
            "codes",
            3,
            Codes(np.arange(8, dtype=np.int32).reshape(2, 4), 1, (WordTiming(0, 0.5, 0.75),)),
            final=False,
            milestones=(Milestone("talker", time.monotonic() - 5.0),),
        ),
        Chunk("late", "codes", 0, Codes(np.ones((1, 4), np.int32)), final=True),
    ]
    near, far = make_address("near"), make_address("far")
    with listen(near) as start, listen(far) as end:
        sender, outlet = SocketSender(near), UnixEdgeWriter(far)
        early_chunks = EarlyChunkBuffer(outlet.put)
        early_chunks.registered("early")
        async with linked() as (stream, other):
            relays = [
                asyncio.create_task(relay_from(start, partial(send_chunks, stream))),
                asyncio.create_task(forward_chunks(other, early_chunks.put)),
            ]
            await asyncio.to_thread(sender.put, chunks)
            receiver = await asyncio.to_thread(SocketReceiver, end)
            [early] = await asyncio.to_thread(receiver.get)
            early_chunks.registered("late")
            [late] = await asyncio.to_thread(receiver.get)
            for relay in relays:
                relay.cancel()
            await asyncio.gather(*relays, return_exceptions=True)
        receiver.close()
        sender.close()
        await outlet.close()
    assert same(chunks[1], late)
    [sent], [arrived] = chunks[0].milestones, early.milestones
    assert 0 <= arrived.at_s - sent.at_s < time.monotonic() - sent.at_s - 5.0, "the journey"
    assert same(sent.step, arrived.step)
    assert same(chunks[0].payload, early.payload)


@pytest.mark.parametrize("body", [b"short", bytes(8) + b"".join(encode({"groups": 3}))])
async def test_what_are_no_chunks_ends_the_link(body: bytes) -> None:
    async def nothing(_: EncodedChunks) -> None:
        raise AssertionError("these were no chunks")

    async with linked() as (stream, other):
        await stream.send(StageFrameKind.CHUNKS, body)
        with pytest.raises(ProtocolError, match=r"no chunks|is no Heads"):
            await forward_chunks(other, EarlyChunkBuffer(nothing).put)
        await stream.wait_until_ended()
