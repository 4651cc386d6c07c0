"""GET /docs: the HTTP routes as a page. All that it loads comes from this server."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.staticfiles import StaticFiles
from starlette.requests import Request
from starlette.responses import Response

_PAGE = "/docs"
_ASSETS = f"{_PAGE}/assets"
_PACKAGE = "fastapi_offline"
"""Has Swagger UI's files."""
_SETTINGS = {"validatorUrl": None}
"""By default, Swagger UI shows a badge of a validator elsewhere."""


def add_reference(app: FastAPI) -> None:
    """Serve the page where its package is installed, which the extra `web` brings."""
    if find_spec(_PACKAGE) is None:
        return
    # Relative, for proxies that serve this server under a path.
    assets = _ASSETS.removeprefix("/")
    page = get_swagger_ui_html(
        openapi_url="openapi.json",
        title=f"{app.title}: HTTP reference",
        swagger_js_url=f"{assets}/swagger-ui-bundle.js",
        swagger_css_url=f"{assets}/swagger-ui.css",
        swagger_favicon_url="favicon.ico",
        swagger_ui_parameters=_SETTINGS,
    )

    async def send_page(request: Request) -> Response:
        return page

    app.router.add_route(_PAGE, send_page, methods=["GET"], include_in_schema=False)
    folder = Path(str(files(_PACKAGE))) / "static"
    app.mount(_ASSETS, StaticFiles(directory=folder), name="docs")
