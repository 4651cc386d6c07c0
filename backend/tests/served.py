"""A checkpoint behind a real server in a thread of the test's process.

Stages are processes of their own, as ever, forked from the fork server that this process's other
tests use too: a server by `cantata serve` would import vLLM and the api once more, ten CPU seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from socket import socket

import uvloop
from fastapi import FastAPI

from cantata.api.app import create_app, mount_pages
from cantata.api.server.lifecycle import Phase
from cantata.api.server.listening import get_url, listen
from cantata.api.server.serve import make_server
from cantata.api.server.server_config import ServerOptions, build_settings
from cantata.config import load_deployment
from cantata.config.plugins import LocatedModel
from cantata.contract.model.plugin import ModelPlugin
from cantata.pipeline.plan import ServicePlan, plan_service, plan_services, preload_stages
from cantata.pipeline.service import PipelineService, create_service

START_DEADLINE_S = 240.0


@contextmanager
def served(checkpoint: Path, voices: Path, *, pages: bool = False) -> Iterator[str]:
    """Serve in float32 for the time of the block.

    Args:
        checkpoint: a model's folder.
        voices: folder of uploaded ones.
        pages: with the page at `/`.

    Yields:
        The address, once the model can speak.

    Raises:
        RuntimeError: the model could not be started.
    """
    plans = plan_services([str(checkpoint)], dtype="float32")
    with served_plans(plans, voices, pages=pages) as url:
        yield url


def plan_small(checkpoint: Path, **settings: Mapping[str, int]) -> ServicePlan:
    """How to serve a checkpoint in float32, with four slots in each stage.

    Args:
        checkpoint: a model's folder.
        settings: others of stages, by name.
    """
    plan = plan_service(str(checkpoint), dtype="float32")
    stages = {
        name: stage.model_copy(update={"slots": 4, **settings.get(name, {})})
        for name, stage in plan.deployment.stages.items()
    }
    return replace(plan, deployment=plan.deployment.model_copy(update={"stages": stages}))


@asynccontextmanager
async def started(plan: ServicePlan) -> AsyncIterator[PipelineService]:
    """Run a model without the api, in the caller's loop."""
    service = create_service(plan)
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


def planned(plugin: ModelPlugin, folder: Path) -> ServicePlan:
    """How to serve a plug-in that need not be installed, with random weights in float32.

    Args:
        folder: exists; for the weights.
    """
    assert plugin.write_random_checkpoint is not None
    plugin.write_random_checkpoint(folder)
    located = LocatedModel(plugin, folder)
    deployment = load_deployment(plugin.deployment, located.pipeline).with_dtype("float32")
    return ServicePlan(located, located.pipeline, deployment)


@contextmanager
def served_plans(
    plans: Sequence[ServicePlan], voices: Path, *, pages: bool = False
) -> Iterator[str]:
    """As `served`, for several models."""
    preload_stages(plans)
    with listen("127.0.0.1", 0) as listener:
        settings = build_settings(ServerOptions(voices_dir=voices), "127.0.0.1")
        # In the caller's thread: FastAPI filters warnings, of all threads, while it makes an app.
        app = create_app(create_service(*plans), settings)
        if pages:
            mount_pages(app)
        with _running(app, listener):
            yield get_url(listener)


@contextmanager
def _running(app: FastAPI, listener: socket) -> Iterator[None]:
    server, settled = make_server(app), Future[str | None]()

    async def serve() -> None:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        lifecycle = app.state.context.lifecycle
        await lifecycle.settled.wait()
        settled.set_result(None if lifecycle.phase is Phase.STARTED else str(lifecycle.error))
        await serving

    with ThreadPoolExecutor(1, "served") as pool:
        running = pool.submit(uvloop.run, serve())
        try:
            if (error := settled.result(START_DEADLINE_S)) is not None:
                raise RuntimeError(f"the server was not ready: {error}")
            yield
        finally:
            server.stop()
            running.result()
