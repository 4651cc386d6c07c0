"""A stage on a host, as its pipeline sees it; the host's end of the link is in the test's hands."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest

from cantata.contract.data.chunks import Chunk, Codes, Payload
from cantata.contract.data.errors import StageDied
from cantata.contract.process.messages import Abort, Output, Register, StageCapacity
from cantata.distributed.address import Address
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.link import Link
from cantata.distributed.link.stream import WINDOW_BYTES, LinkStream
from cantata.distributed.serialization import encode
from cantata.distributed.stages.host_link import HostLink
from cantata.distributed.stages.messages import StageDeath, StageFrameKind, StageReady
from cantata.distributed.stages.remote_stage import RemoteStage
from cantata.distributed.stages.transfer import encode_for_link
from cantata.pipeline.stage_process import Death, Report, StageState

LIMIT_S = 20.0
READY = StageReady(StageCapacity(4, None), pid=7)
CRASH = StageDeath("it crashed", -11, None, {}, False, ())


class Connected:
    """A link that is there."""

    address = Address("10.0.0.8", 8200)
    trouble = ""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def link(self) -> Link:
        return self._link


@dataclass
class Host:
    """What the host's end got, and the stage at the other."""

    stage: RemoteStage
    arrived: asyncio.Queue[LinkStream]
    deaths: list[Death]

    async def launched(self) -> LinkStream:
        stream = await self.arrived.get()
        assert await stream.receive() is not None
        return stream

    async def ready(self) -> LinkStream:
        starting = asyncio.create_task(self.stage.start(LIMIT_S))
        stream = await self.launched()
        await stream.send(StageFrameKind.READY, *encode(READY))
        await starting
        return stream


@asynccontextmanager
async def host() -> AsyncIterator[Host]:
    heartbeat = Heartbeat(0.02)
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    arrived: asyncio.Queue[LinkStream] = asyncio.Queue()
    server = Link(near, LinkSide.CONNECTED, heartbeat, "host")
    theirs = Link(far, LinkSide.ACCEPTED, heartbeat, "server", on_stream=arrived.put_nowait)
    deaths: list[Death] = []

    def hear(_: str, report: Report) -> None:
        raise KeyError("no edge leads from there to the api")

    stage = RemoteStage(
        "talker",
        cast(HostLink, Connected(server)),
        {"codes"},
        hear,
        lambda _, death: deaths.append(death),
    )
    server.begin()
    theirs.begin()
    try:
        async with asyncio.timeout(LIMIT_S):
            yield Host(stage, arrived, deaths)
    finally:
        server.close()
        theirs.close()
        await stage.stop(0)
        heartbeat.close()


async def test_a_stage_that_dies_as_soon_as_it_is_ready_has_not_started() -> None:
    """Else it would count as ready, and nobody would start it again."""
    async with host() as there:
        starting = asyncio.create_task(there.stage.start(LIMIT_S))
        stream = await there.launched()
        await stream.send(StageFrameKind.READY, *encode(READY))
        await stream.send(StageFrameKind.DIED, *encode(CRASH))
        stream.end()
        with pytest.raises(StageDied, match=r"it crashed \(on 10\.0\.0\.8:8200\)"):
            await starting
        assert there.stage.state is StageState.ENDED


async def test_an_order_that_waits_for_credit_ends_with_its_stage() -> None:
    async with host() as there:
        stream = await there.ready()
        large = Register("first", np.zeros(WINDOW_BYTES, np.uint8), batch=False)  # type: ignore[arg-type]
        await there.stage.send(large)
        waiting = asyncio.create_task(there.stage.send(Abort(("first",))))
        await asyncio.sleep(0)
        assert not waiting.done()
        await stream.send(StageFrameKind.DIED, *encode(CRASH))
        with pytest.raises(StageDied, match="is not running"):
            await waiting
        stream.end()


async def test_a_stage_is_lost_when_its_message_cannot_be_handled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with host() as there:
        stream = await there.ready()
        strange: Chunk[Payload] = Chunk("r", "?", 0, Codes(np.zeros((1, 1), np.int32)), final=True)
        await stream.send(StageFrameKind.EVENT, *encode_for_link(Output((strange,))))
        await stream.wait_until_ended()
        [death] = there.deaths
        assert "no edge leads from there" in death.error.message
        assert "its message could not be handled" in caplog.text
        assert there.stage.state is StageState.ENDED
        stream.end()
