"""Stage processes behind an orchestrator, without a server."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.config import parse_deployment
from cantata.contract.data.request import PipelineRequest
from cantata.contract.model.pipeline import PipelineSpec
from cantata.pipeline.orchestrator import Orchestrator


@asynccontextmanager
async def orchestrating(
    pipeline: PipelineSpec, folder: Path, settings: dict[str, Any]
) -> AsyncIterator[Orchestrator]:
    """Started with a deployment of these settings; stopped at the end."""
    deployment = parse_deployment(settings, pipeline)
    orchestrator = Orchestrator(pipeline, folder, deployment, logging.WARNING)
    await orchestrator.start()
    try:
        yield orchestrator
    finally:
        await orchestrator.stop(deadline_s=5)


async def speak(orchestrator: Orchestrator, request: PipelineRequest) -> NDArray[np.float32]:
    """[N, channels] samples."""
    async with orchestrator.open(request) as stream:
        return np.concatenate([new.payload.samples async for new in orchestrator.sound(stream)])


async def count_held(orchestrator: Orchestrator) -> dict[str, int]:
    """What any stage holds, by stage and name, without zeros."""
    return {
        f"{name}.{what}": count
        for name, stage in orchestrator.stages.items()
        for what, count in (await stage.get_counts()).items()
        if count
    }
