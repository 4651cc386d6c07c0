"""An encoder on a stage host that is lost: streams that it has begun go on, and so does whoever
needs no encoder."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.config import parse_deployment
from cantata.config.plugins import LocatedModel
from cantata.contract.data.errors import StageDied
from cantata.contract.data.request import PipelineRequest
from cantata.distributed.key import LinkKey
from cantata.distributed.stages.pipeline import StagesOnHosts
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.plan import ServicePlan
from host_process import KEY, HostProcess
from stage_hosts import placed, stage_host
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.inputs import TinyInput, TinySound
from tiny_talker.plugin import ENCODED
from tiny_talker.stage_host import LED

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

FRAMES = 40
LIMIT_S = 240.0


@pytest.fixture(scope="module")
def host() -> Iterator[HostProcess]:
    with stage_host(6) as host:
        host.start()
        host.wait_until_ready()
        yield host


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(
    host: HostProcess, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Orchestrator]:
    folder: Path = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(folder)
    stages = {
        "encoder": {"slots": 4},
        "talker": {"slots": 4, "max_model_len": 128},
        "decoder": {"slots": 4, "credit_s": 1.0},
    }
    deployment = placed(
        parse_deployment({"stages": stages}, ENCODED), {"encoder": str(host.address)}
    )
    plan = ServicePlan(LocatedModel(LED, folder), ENCODED, deployment)
    remote_stages = StagesOnHosts(plan, LinkKey(KEY.encode()))
    orchestrator = Orchestrator(
        ENCODED, folder, deployment, logging.CRITICAL, remote_stages=remote_stages
    )
    await orchestrator.start()
    yield orchestrator
    await orchestrator.stop(deadline_s=5)


def following(name: str) -> PipelineRequest:
    """A request that follows a recording."""
    samples = np.linspace(1.0, 0.1, 6, dtype=np.float32)
    talker = TinyInput([7, 8], FRAMES, min_frames=FRAMES, follows=True)
    return PipelineRequest(name, {"encoder": TinySound(samples), "talker": talker})


def plain(name: str) -> PipelineRequest:
    return PipelineRequest(name, {"talker": TinyInput([7, 8], FRAMES, min_frames=FRAMES)})


async def heard(pipeline: Orchestrator, asked: PipelineRequest) -> NDArray[np.float32]:
    async with pipeline.open(asked) as opened:
        return np.concatenate([chunk.payload.samples async for chunk in pipeline.sound(opened)])


@pytest.mark.thorough
async def test_a_stream_that_has_left_its_encoder_behind_goes_on(
    pipeline: Orchestrator, host: HostProcess
) -> None:
    followed, unled = await heard(pipeline, following("f0")), await heard(pipeline, plain("p0"))
    assert not np.array_equal(followed, unled)
    async with pipeline.open(following("f1")) as opened:
        sound = pipeline.sound(opened)
        parts = [(await anext(sound)).payload.samples]
        host.send(signal.SIGKILL)
        async with asyncio.timeout(LIMIT_S):
            while pipeline.ready:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert not opened.complete
        np.testing.assert_array_equal(await heard(pipeline, plain("p1")), unled)
        with pytest.raises(StageDied):
            await heard(pipeline, following("f2"))
        parts += [chunk.payload.samples async for chunk in sound]
    np.testing.assert_array_equal(np.concatenate(parts), followed)
    host.end()
    host.start()
    await pipeline.wait_until_ready(LIMIT_S)
    np.testing.assert_array_equal(await heard(pipeline, following("f3")), followed)
