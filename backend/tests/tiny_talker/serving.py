"""The tiny talker behind a real server in the test's own event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import SO_SNDBUF, SOL_SOCKET

from fastapi import FastAPI

from cantata.api.app import create_app
from cantata.api.server.listening import get_url, listen
from cantata.api.server.serve import make_server
from cantata.config import parse_deployment
from cantata.contract.model.pipeline import PipelineSpec
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.service import PipelineService, ServedPipeline
from cantata.pipeline.slot_policy import SlotPolicy
from cantata.pipeline.speech_model import PipelineSpeechModel
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.plugin import AUDIBLE, PLUGIN, TinyRequestBuilder


@dataclass(frozen=True)
class TinyServer:
    """A running server with one model."""

    url: str
    wyoming_port: int
    app: FastAPI
    model: PipelineSpeechModel

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    @property
    def socket_url(self) -> str:
        return self.url.replace("http", "ws")

    async def held(self) -> dict[str, int]:
        """What any stage holds, by stage and name, without zeros."""
        return {
            f"{name}.{what}": count
            for name, stage in self.model.orchestrator.stages.items()
            for what, count in (await stage.get_counts()).items()
            if count
        }


@asynccontextmanager
async def tiny_server(
    folder: Path,
    *,
    slots: int,
    pipeline: PipelineSpec = AUDIBLE,
    builder: TinyRequestBuilder | None = None,
    chunk_timeout_s: float = 60.0,
    idle_unload_s: float | None = None,
) -> AsyncIterator[TinyServer]:
    """Serve; the kernel buffers little of what a client leaves unread.

    Args:
        folder: for the checkpoint.
        slots: of both stages.
        pipeline: one of `tiny_talker.plugin`.
        builder: of requests.
        chunk_timeout_s: of the deployment, as the next.
        idle_unload_s: None: the model stays.
    """
    save_tiny_checkpoint(folder)
    stages = {
        "talker": {"slots": slots, "max_model_len": 128},
        "decoder": {"slots": slots, "credit_s": 4.0},
    }
    raw = {
        "stages": stages,
        "chunk_timeout_s": chunk_timeout_s,
        "idle_unload_s": idle_unload_s,
    }
    deployment = parse_deployment(raw, pipeline)
    orchestrator = Orchestrator(pipeline, folder, deployment, logging.WARNING)
    policy = SlotPolicy(PLUGIN.name, orchestrator)
    model = PipelineSpeechModel(builder or TinyRequestBuilder(), policy, 20_000, False, {})
    wyoming = listen("127.0.0.1", 0)
    app = create_app(PipelineService([ServedPipeline(policy, (model,))]), wyoming=wyoming)
    listener = listen("127.0.0.1", 0)
    for one in (listener, wyoming):
        one.setsockopt(SOL_SOCKET, SO_SNDBUF, 4096)
    server = make_server(app)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await app.state.context.lifecycle.settled.wait()
        yield TinyServer(get_url(listener), wyoming.getsockname()[1], app, model)
    finally:
        server.stop()
        await serving
        listener.close()
