"""A server's link to a stage host that cannot run its pipeline."""

from __future__ import annotations

import asyncio
import socket

import pytest

from cantata.contract.data.faults import Fault
from cantata.distributed.link.frames import END
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.link import Link
from cantata.distributed.serialization import decode, encode
from cantata.distributed.stages.host import session as session_module
from cantata.distributed.stages.host.pipeline import StageLogs
from cantata.distributed.stages.host.session import HostSession
from cantata.distributed.stages.messages import (
    EdgeName,
    LaunchCommand,
    PipelineCommand,
    StageFrameKind,
)
from cantata.distributed.stages.transfer import forward_chunks
from cantata.ipc.encoded import EncodedChunks

LIMIT_S = 20.0
ORDER = PipelineCommand("singer", None, "", {}, {}, ("talker",))


async def nothing(_: EncodedChunks) -> None:
    raise AssertionError("no chunk was sent")


async def refusal() -> Fault:
    """What a launch is told that follows after the host has refused the pipeline's edges."""
    heartbeat = Heartbeat(0.02)
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    link = Link(near, LinkSide.CONNECTED, heartbeat, "host")
    serving = asyncio.create_task(HostSession(far, "server", heartbeat, {}, StageLogs()).run())
    link.begin()
    try:
        async with asyncio.timeout(LIMIT_S):
            link.message(StageFrameKind.PIPELINE, *encode(ORDER))
            edge = link.open()
            edge.post(StageFrameKind.EDGE_BACK, *encode(EdgeName("talker.codes", "codec")))
            await forward_chunks(edge, nothing)
            stage = link.open()
            stage.post(StageFrameKind.LAUNCH, *encode(LaunchCommand("talker", LIMIT_S)))
            frame = await stage.receive()
            assert frame is not None
            assert frame.kind == END
            return decode(frame.body, Fault)
    finally:
        link.close()
        await serving
        heartbeat.close()


async def test_a_refused_pipeline_says_why_on_a_link_that_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And the host's log says it once, however many stages and edges there are."""
    fault = await refusal()
    assert fault.name == "ConfigError"
    assert "'singer' is not installed" in fault.message
    assert caplog.text.count("'singer' is not installed") == 1


async def test_an_unforeseen_fault_of_the_host_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the server would wait until the deadline of its start."""

    def unreadable(*_: object) -> None:
        raise PermissionError("the model's folder cannot be read")

    monkeypatch.setattr(session_module, "plan_hosted", unreadable)
    fault = await refusal()
    assert fault.name == "StageDied"
    assert "the model's folder cannot be read" in fault.message
