"""The server's Gradio app, imported, built and started at the first request for it.

Importing Gradio takes seconds and 100 MB, and its queue never sleeps for long: a server whose
users take the page, or the API, needs none of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

if TYPE_CHECKING:
    from cantata_web.gradio_blocks import OpenClient

# What the app and its client ask for. The rest stays shut: uploads, proxies, recordings.
_PATHS = ("/", "/config", "/theme.css", "/manifest.json", "/favicon.ico")
_FOLDERS = ("/assets/", "/static/")
_API = tuple(
    f"/gradio_api/{name}"
    for name in ("info", "startup-events", "queue/join", "queue/data", "cancel")
)
_API_FOLDERS = ("/gradio_api/file=", "/gradio_api/heartbeat/")


class GradioApp:
    """An ASGI app.

    Args:
        server_url: the speech server, for browsers; relative to the app's page.
        open_client: opens a client of the speech server.
    """

    def __init__(self, server_url: str, open_client: OpenClient) -> None:
        self._server_url = server_url
        self._open_client = open_client
        self._starting = asyncio.Lock()
        self._app: FastAPI | None = None
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        known = path in _PATHS or path in _API or path.startswith((*_FOLDERS, *_API_FOLDERS))
        if scope["type"] != "http" or not known:
            raise HTTPException(404)
        async with self._starting:
            if self._app is None:
                self._app = await self._start()
        await self._app(scope, receive, send)

    async def stop(self) -> None:
        """End the app, if it was started, and remove its files."""
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running

    async def _start(self) -> FastAPI:
        folder = tempfile.TemporaryDirectory(prefix="cantata-gradio-")
        app, parent = await asyncio.to_thread(asyncio.run, self._build(Path(folder.name)))
        started = asyncio.Event()

        async def run() -> None:
            with folder:
                async with parent.router.lifespan_context(parent):
                    started.set()
                    await asyncio.Event().wait()  # until `stop`

        self._running = asyncio.create_task(run())
        await started.wait()
        return app

    async def _build(self, folder: Path) -> tuple[FastAPI, FastAPI]:
        # In a loop of its own: without one Gradio makes one and leaves it open.
        from cantata_web.gradio_blocks import build_app

        return build_app(self._server_url, self._open_client, folder)
