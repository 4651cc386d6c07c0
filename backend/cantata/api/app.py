"""Puts the app together: routes, errors, the service's lifetime; and optional pages on it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from fastapi import FastAPI

from cantata import __version__
from cantata.api import errors, health, models, speech, stream
from cantata.api.context import ApiContext
from cantata.api.lifecycle import ServiceLifecycle
from cantata.api.request_id import BodyLimitMiddleware, RequestIdMiddleware
from cantata.api.schemas import ErrorBody
from cantata.api.settings import ServerSettings
from cantata.contract.service import SpeechService
from cantata.metrics import Metrics

logger = logging.getLogger(__name__)

PAGES_GROUP = "cantata.pages"
_ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody} for status in ("4XX", "5XX")
}
"""Said once for all routes; it also keeps FastAPI's own 422, which is never sent, out of the
OpenAPI document."""


def create_app(service: SpeechService, settings: ServerSettings | None = None) -> FastAPI:
    """The api over one service, which the app starts (unless that has begun) and stops.

    The app is up before the service is: `/health` answers while stages load, `/ready` says 503.
    """
    settings = settings or ServerSettings()
    context = ApiContext(service, settings, ServiceLifecycle(service), Metrics())
    app = FastAPI(
        title="Cantata",
        version=__version__,
        description="Streaming speech. Every message and route: docs/protocol.md",
        lifespan=_lifespan,
    )
    app.state.context = context
    errors.install(app)
    # The last one added is the outermost: the id must be on what the body limit refuses.
    app.add_middleware(BodyLimitMiddleware, max_bytes=settings.max_body_bytes)
    app.add_middleware(RequestIdMiddleware)
    for routes in (health, models, speech, stream):
        app.include_router(routes.router, responses=_ERROR_RESPONSES)
    return app


def mount_pages(app: FastAPI) -> None:
    """Add the pages of the entry-point group `cantata.pages`; slow, since it imports them.

    They come last, since a page may take every path that is left.
    """
    for page in entry_points(group=PAGES_GROUP):
        _mount(app, page)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    lifecycle: ServiceLifecycle = app.state.context.lifecycle
    lifecycle.begin()
    try:
        yield
    finally:
        await lifecycle.end()


def _mount(app: FastAPI, page: EntryPoint) -> None:
    """Let an optional page add itself. One that misses a dependency is left out, not fatal."""
    try:
        page.load()(app)
    except ImportError as error:
        hint = f"pip install 'cantata[{page.name}]'"
        logger.warning("page %r is not served: %s (%s adds it)", page.name, error, hint)
