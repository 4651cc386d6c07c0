"""Works on what is kept, for as long as the server runs: jobs are spoken, batches answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from cantata.api.batches.answerer import LineAnswerer
from cantata.api.context import ApiContext
from cantata.api.jobs.narrator import ServerNarrator
from cantata.api.jobs.opening import get_batch_store
from cantata.api.server.lifecycle import Phase
from cantata.jobs.answering import AnsweredBatches
from cantata.jobs.runner import JobRunner
from cantata.jobs.speaking import SpokenJobs
from cantata.telemetry.request_record import RequestSink


@asynccontextmanager
async def work_on_jobs(
    context: ApiContext, limits: Mapping[str, int], sinks: Sequence[RequestSink] = ()
) -> AsyncIterator[None]:
    """Work on what is kept for the time of the block, if this server keeps anything.

    Args:
        limits: bytes of the longest body, by path.
        sinks: take a record of each line of a batch.
    """
    if context.jobs is None:
        yield
        return
    store = get_batch_store(context)
    answerer = LineAnswerer(context, store.files, limits, sinks)
    batches = AnsweredBatches(context.jobs, store, answerer)
    spoken = SpokenJobs(context.jobs, ServerNarrator(context, context.jobs))
    runner = JobRunner(context.jobs, (spoken, batches))
    running = asyncio.create_task(_run_when_ready(context, runner), name="jobs")
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])
        await context.jobs.close()


async def _run_when_ready(context: ApiContext, runner: JobRunner) -> None:
    """A server without models ends; its jobs wait for the next one."""
    await context.lifecycle.settled.wait()
    if context.lifecycle.phase is Phase.STARTED:
        await runner.run()
