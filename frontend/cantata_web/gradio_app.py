"""The server's Gradio app, imported, built and started at the first request for it.

Importing Gradio takes seconds and 100 MB, and its queue never sleeps for long: a server whose
users take the page, or the API, needs none of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

import httpx
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from cantata_web.gradio_offer import Offer, read_offer
from cantata_web.gradio_streams import HEARTBEAT, Leaving, SessionStreams

# What tells programs and pages which endpoints there are.
_LISTINGS = ("/", "/config", "/gradio_api/info")
# What the app and its client ask for. The rest stays shut, such as proxies.
_PATHS = ("/", "/config", "/theme.css", "/manifest.json", "/favicon.ico")
_FOLDERS = ("/assets/", "/static/")
_API = tuple(
    f"/gradio_api/{name}"
    for name in (
        *("info", "startup-events", "queue/join", "queue/data", "cancel"),
        *("upload", "upload_progress", "run/predict"),
    )
)
_API_FOLDERS = ("/gradio_api/file=", HEARTBEAT)
_MAX_OFFER_S = 10.0
"""A server that takes longer does not hold up the page."""
_BUSY_POLL_S, _IDLE_POLL_S = 0.05, 0.5
"""How often Gradio's queue looks for calls: while the app is used, and otherwise."""
_IDLE_AFTER_S = 30.0
"""Without a request."""


class GradioApp:
    """An ASGI app.

    Args:
        server_url: the speech server, for browsers; relative to the app's page.
        api_base: the speech server, for this process. None: the one that this app is part of, at
            the address at which it is first called.
        leaving: tells when the server that serves the app stops. None: nothing waits for its
            streams.
    """

    def __init__(self, server_url: str, api_base: str | None, leaving: Leaving | None) -> None:
        self._server_url = server_url
        self._api_base = api_base
        self._streams = None if leaving is None else SessionStreams(leaving)
        self._starting = asyncio.Lock()
        self._app: FastAPI | None = None
        self._running: asyncio.Task[None] | None = None
        self._calming: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        known = path in _PATHS or path in _API or path.startswith((*_FOLDERS, *_API_FOLDERS))
        if scope["type"] != "http" or not known:
            raise HTTPException(404)
        async with self._starting:
            if self._app is None:
                self._app = await self._start(scope)
        self._poll_often(self._app)
        if path in _LISTINGS:
            await self._list_endpoints(self._app, scope)
        if self._streams is None:
            await self._app(scope, receive, send)
        else:
            await self._streams.serve(self._app, path, scope, receive, send)

    async def stop(self) -> None:
        """End the app, if it was started, and remove its files."""
        if self._calming is not None:
            self._calming.cancel()
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running

    async def _start(self, scope: Scope) -> FastAPI:
        api_base = self._api_base or _find_own_address(scope)
        folder = tempfile.TemporaryDirectory(prefix="cantata-gradio-")
        offer = await _fetch_offer(api_base, {})
        app, parent = await asyncio.to_thread(
            asyncio.run, self._build(api_base, offer or Offer(), Path(folder.name))
        )
        started = asyncio.Event()

        async def run() -> None:
            with folder:
                async with parent.router.lifespan_context(parent):
                    started.set()
                    await asyncio.Event().wait()  # until `stop`

        self._running = asyncio.create_task(run())
        await started.wait()
        return app

    def _poll_often(self, app: FastAPI) -> None:
        """For as long as the app is used: an idle server should not wake twenty times a second."""
        from cantata_web.gradio_blocks import set_polling

        if self._calming is not None:
            self._calming.cancel()
        set_polling(app, _BUSY_POLL_S)
        loop = asyncio.get_running_loop()
        self._calming = loop.call_later(_IDLE_AFTER_S, set_polling, app, _IDLE_POLL_S)

    async def _list_endpoints(self, app: FastAPI, scope: Scope) -> None:
        """Only those of what is served, as far as the server tells the caller; models may have
        come or gone."""
        from cantata_web.gradio_blocks import offer_endpoints

        key = Headers(scope=scope).get("authorization")
        headers = {"authorization": key} if key else {}
        offer = await _fetch_offer(self._api_base or _find_own_address(scope), headers)
        if offer is not None:
            offer_endpoints(app, offer)

    async def _build(self, api_base: str, offer: Offer, folder: Path) -> tuple[FastAPI, FastAPI]:
        # In a loop of its own: without one Gradio makes one and leaves it open.
        from cantata_web.gradio_blocks import build_app

        return build_app(self._server_url, lambda: _open_client(api_base), offer, folder)


def _find_own_address(scope: Scope) -> str:
    """Where the server's own socket is, whatever a proxy in front of it is called."""
    host, port = scope["server"]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _open_client(api_base: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=api_base, timeout=None, trust_env=False)


async def _fetch_offer(api_base: str, headers: Mapping[str, str]) -> Offer | None:
    """None, if the server is not ready or wants a key: the page asks again."""
    try:
        async with asyncio.timeout(_MAX_OFFER_S), _open_client(api_base) as client:
            return await read_offer(client, headers)
    except (httpx.HTTPError, TimeoutError):
        return None
