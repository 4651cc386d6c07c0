"""Whether a model that draws holds anything."""

from __future__ import annotations

import asyncio

from cantata.pipeline.image_model import PipelineImageModel


async def until_free(model: PipelineImageModel) -> None:
    """No stage holds anything."""
    stages = model.orchestrator.stages.values()
    async with asyncio.timeout(30):
        while any([any((await stage.get_counts()).values()) for stage in stages]):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def assert_idle(model: PipelineImageModel) -> None:
    """Soon no stage holds anything, and then neither does the server."""
    await until_free(model)
    assert model.admission.running == model.admission.slots_in_use == 0
