"""The ends of an edge that a relay holds, with the stages' own ends at the other side; and which
requests a lost stage held."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest

from cantata.contract.data.chunks import Chunk, Payload, Rows
from cantata.distributed.stages import unfinished as unfinished_module
from cantata.distributed.stages.unfinished import Unfinished
from cantata.distributed.stages.unix_edges import UnixEdgeWriter, relay_from
from cantata.ipc.connectors import SocketReceiver, SocketSender, listen, make_address
from cantata.ipc.encoded import EncodedChunks

LIMIT_S = 20.0


def chunk(
    request_id: str, index: int = 0, *, port: str = "rows", final: bool = False
) -> Chunk[Payload]:
    return Chunk(request_id, port, index, Rows(np.zeros((1, 1), np.float32)), final)


@asynccontextmanager
async def relayed() -> AsyncIterator[tuple[str, asyncio.Queue[EncodedChunks]]]:
    """An address to which a stage sends, and what arrives behind it."""
    address, arrived = make_address("test"), asyncio.Queue[EncodedChunks]()
    with listen(address) as listener:
        relaying = asyncio.create_task(relay_from(listener, arrived.put))
        yield address, arrived
        relaying.cancel()
        await asyncio.wait({relaying})


async def test_a_relay_takes_what_a_stage_and_its_successor_send() -> None:
    async with relayed() as (address, arrived):
        for name in ("first", "second"):
            stage = SocketSender(address)
            await asyncio.to_thread(stage.put, [chunk(name, 0), chunk(name, 1)])
            stage.close()
            async with asyncio.timeout(LIMIT_S):
                message = (await arrived.get()).chunks()
            assert [(one.request_id, one.index) for one in message] == [
                (name, 0),
                (name, 1),
            ]


async def test_an_outlet_finds_the_stage_s_successor() -> None:
    address = make_address("test")
    with listen(address) as listener:
        outlet = UnixEdgeWriter(address)
        await outlet.put(EncodedChunks.of([chunk("first")]))
        stage = SocketReceiver(listener)
        assert stage.get()[0].request_id == "first"
        stage.close()
        received: list[str] = []
        while received != ["second"]:  # the kernel takes what comes before it knows of the end
            await outlet.put(EncodedChunks.of([chunk("second")]))
            received = await asyncio.to_thread(_next, listener)
        await outlet.close()


def _next(listener: socket.socket) -> list[str]:
    listener.settimeout(0.1)
    try:
        stage = SocketReceiver(listener)
    except TimeoutError:
        return []
    try:
        return [stage.get()[0].request_id]
    finally:
        stage.close()


async def test_an_outlet_goes_on_after_chunks_that_nobody_took(
    caplog: pytest.LogCaptureFixture,
) -> None:
    address = make_address("test")
    outlet = UnixEdgeWriter(address)
    await outlet.put(EncodedChunks.of([chunk("lost")]))
    assert "chunks that no stage took were dropped" in caplog.text
    with listen(address) as listener:
        await outlet.put(EncodedChunks.of([chunk("next")]))
        assert await asyncio.to_thread(_next, listener) == ["next"]
    await outlet.close()


def test_a_request_is_held_until_the_last_chunk_of_each_port() -> None:
    held = Unfinished({"codes", "rows"})
    for name in ("done", "half", "failed", "begun"):
        held.began(name)
    ends: list[Chunk[Payload]] = [
        chunk("done", port="codes", final=True),
        chunk("half", port="codes", final=True),
        chunk("done", final=True),
        chunk("begun"),
        chunk("unknown", final=True),
    ]
    held.passed(EncodedChunks.of(ends).heads().last)
    held.ended("failed")
    assert held.requests == {"half", "begun"}


def test_requests_that_did_without_a_port_are_forgotten_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unfinished_module, "MAX_OPEN", 2)
    held = Unfinished({"codes", "rows"})
    for name in ("oldest", "older", "new"):
        held.began(name)
        held.passed([(name, "codes")])
    assert held.requests == {"older", "new"}


def test_nothing_is_said_of_what_never_passes() -> None:
    held = Unfinished(())
    held.began("r")
    assert held.requests == frozenset()
