"""Frees requests in every stage before they are given up."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from cantata.contract.data.errors import StageDied
from cantata.contract.process.messages import Abort
from cantata.pipeline.output_stream import OpenRequest
from cantata.pipeline.stage_process import StageProcess
from cantata.pipeline.supervision import Supervisor

logger = logging.getLogger(__name__)

DEADLINE_S = 10.0
"""Limit for the stages' answers."""


class Aborts:
    """One pipeline's. `supervisor`: has the stage processes."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    async def free(self, opened: OpenRequest) -> None:
        """Have its stages free a request; returns when each has confirmed it, or has died."""
        stages = {name: self._supervisor.stages[name] for name in opened.stages}
        alive = {n: stage for n, stage in stages.items() if stage.state.is_running}
        opened.pending_aborts = set(alive)
        if not alive:
            return
        try:
            async with asyncio.timeout(DEADLINE_S):
                # All at once: one whose link is full must not hold up the others.
                await asyncio.gather(*(_abort(stage, opened) for stage in alive.values()))
                await opened.abort_done.wait()
        except TimeoutError:
            late = sorted(opened.pending_aborts)
            logger.error("request %s: no answer to its abort from %s", opened.request_id, late)

    def acknowledged(self, opened: OpenRequest, stage: str) -> None:
        """The stage holds nothing of the request, or is gone."""
        if stage in opened.pending_aborts:
            opened.pending_aborts.discard(stage)
            if not opened.pending_aborts:
                opened.abort_done.set()

    async def reclaim(self, stage: StageProcess, request_ids: tuple[str, ...]) -> None:
        """Have a stage free requests that have ended here, even if their first abort was lost."""
        logger.warning("stage %s still holds requests that have ended: %s", stage.name, request_ids)
        with contextlib.suppress(StageDied):
            await stage.send(Abort(request_ids))


async def _abort(stage: StageProcess, opened: OpenRequest) -> None:
    with contextlib.suppress(StageDied):  # `acknowledged` takes it off the list
        await stage.send(Abort((opened.request_id,)))
