"""Serves the page and the Gradio app: on a speech server's own origin, or for one elsewhere."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException
from starlette.routing import Mount

from cantata_web.gradio_app import GradioApp
from cantata_web.gradio_streams import Leaving
from cantata_web.guide import GUIDE_PATH, Guide, find_guide
from cantata_web.messages import ENGLISH, choose_language
from cantata_web.page import ASSETS_PATH, Page, build_page, language_of

GRADIO_PATH = "/gradio"

Endpoint = Callable[[Request], Awaitable[Response]]


def mount(app: FastAPI) -> None:
    """Serves the page at `/` of `app`, its guide at `/guide/`, and the Gradio app at `/gradio`.

    A server that drains has a `Leaving` as `app.state.drain`.

    Raises:
        ImportError: Gradio is not installed.
    """

    _mount_page(app, api_base="")
    _mount_gradio(app, "..", None, getattr(app.state, "drain", None))


def mount_apart(app: FastAPI, api_base: str) -> None:
    """As `mount`, for the speech server at `api_base`."""
    api_base = api_base.rstrip("/") + "/"
    _mount_page(app, api_base)
    _mount_gradio(app, api_base, api_base, None)


def _mount_page(app: FastAPI, api_base: str) -> None:
    pages = _Pages(api_base)

    async def send_document(request: Request) -> Response:
        accepted = request.headers.get("accept-language", "")
        language = choose_language(request.query_params.get("lang"), accepted)
        document = (await pages.open(language)).document
        return document.response(request, immutable=False, vary="Accept-Language")

    async def send_icon(request: Request) -> Response:
        return pages.english.icon.response(request, immutable=False)

    async def send_license(request: Request) -> Response:
        return pages.english.license.response(request, immutable=False)

    async def send_asset(request: Request) -> Response:
        name = request.path_params["name"]
        page = await pages.open(language_of(name))
        asset = next((asset for asset in page.assets if asset.hashed_name == name), None)
        if asset is None:
            raise HTTPException(404)
        return asset.response(request, immutable=True)

    _add_route(app, "/", send_document)
    _add_route(app, "/favicon.ico", send_icon)  # where pages beside this one look for it
    _add_route(app, "/license.txt", send_license)
    _add_route(app, f"/{ASSETS_PATH}/{{name}}", send_asset)
    guide = Guide(find_guide())
    _add_route(app, GUIDE_PATH, guide.redirect)
    _add_route(app, f"{GUIDE_PATH}/{{name:path}}", guide.send)


class _Pages:
    """The page in its languages: in English from the start, in others once somebody asks."""

    def __init__(self, api_base: str) -> None:
        self._api_base = api_base
        self.english = self._build(ENGLISH)
        self._others: dict[str, asyncio.Task[Page]] = {}

    async def open(self, language: str) -> Page:
        if language == ENGLISH:
            return self.english
        if language not in self._others:
            building = asyncio.to_thread(self._build, language)
            self._others[language] = asyncio.create_task(building)
        # Who asked first may leave; others wait for the same page.
        return await asyncio.shield(self._others[language])

    def _build(self, language: str) -> Page:
        page = build_page(self._api_base, language)
        for asset in (page.document, *page.assets):
            asset.codings  # noqa: B018 - compresses it now, not on the event loop
        return page


def _mount_gradio(
    app: FastAPI, server_url: str, api_base: str | None, leaving: Leaving | None
) -> None:
    if find_spec("gradio") is None:
        raise ImportError("No module named 'gradio'")

    async def redirect(request: Request) -> Response:
        return RedirectResponse(f"{GRADIO_PATH.removeprefix('/')}/")

    _add_route(app, GRADIO_PATH, redirect)
    gradio = GradioApp(server_url, api_base, leaving)
    app.router.routes.append(Mount(GRADIO_PATH, app=gradio, name="gradio"))
    _call_at_shutdown(app, gradio.stop)


def _call_at_shutdown(app: FastAPI, stop: Callable[[], Awaitable[None]]) -> None:
    served = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Any]:
        async with served(app) as state:
            try:
                yield state
            finally:
                await stop()

    app.router.lifespan_context = lifespan


def _add_route(app: FastAPI, path: str, endpoint: Endpoint) -> None:
    app.router.add_route(path, endpoint, methods=["GET"], include_in_schema=False)


def main() -> None:
    """Serve the page alone, for a speech server elsewhere."""
    parser = argparse.ArgumentParser(prog="python -m cantata_web", description=main.__doc__)
    parser.add_argument(
        "--api-base", default="http://127.0.0.1:8000", help="URL of the speech server"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=7860, help="port to listen on")
    options = parser.parse_args()

    import uvicorn

    app = FastAPI()
    mount_apart(app, options.api_base)
    uvicorn.run(app, host=options.host, port=options.port, log_level="info")
