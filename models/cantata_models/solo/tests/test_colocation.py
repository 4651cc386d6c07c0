"""The decoder in the talker's process: the samples of two processes, bit for bit."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cantata.config import ArDeployment, CodecDeployment
from cantata.contract.data.request import SpeechRequest
from cantata.pipeline.plan import ServicePlan, plan_service
from served import started

pytestmark = pytest.mark.integration

TEXTS = ("Good morning.", "The kettle is on, and the bread is warm.", "Who is there?")


def plan(*, together: bool, engine: str = "vllm") -> ServicePlan:
    made = plan_service("solo", dtype="float32")
    changes: dict[type[Any], dict[str, Any]] = {
        ArDeployment: {"engine": engine},
        CodecDeployment: {"colocate": "talker" if together else None},
    }
    stages = {
        name: stage.model_copy(update=changes[type(stage)])
        for name, stage in made.deployment.stages.items()
    }
    return replace(made, deployment=made.deployment.model_copy(update={"stages": stages}))


async def speak_all(plan: ServicePlan) -> tuple[int, list[NDArray[np.float32]]]:
    """The number of processes, and each text's samples; all are spoken at once."""
    async with started(plan) as service:
        (model,) = service.models.values()

        async def speak(text: str) -> NDArray[np.float32]:
            async with model.run(SpeechRequest(text, "clara", seed=3)) as utterance:
                return np.concatenate([chunk.samples async for chunk in utterance])

        stages = model.orchestrator.stages.values()
        return len({stage.pid for stage in stages}), await asyncio.gather(*map(speak, TEXTS))


@pytest.mark.thorough
async def test_one_process_makes_the_samples_of_two() -> None:
    """With either engine."""
    alone, expected = await speak_all(plan(together=False))
    assert alone == 2
    for engine in ("vllm", "graphs"):
        shared, samples = await speak_all(plan(together=True, engine=engine))
        assert shared == 1
        for one, other in zip(samples, expected, strict=True):
            np.testing.assert_array_equal(one, other)
