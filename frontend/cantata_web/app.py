"""Serves the page: on a speech server's own origin, or alone in front of one elsewhere."""

from __future__ import annotations

import argparse

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from cantata_web.page import ASSETS_PATH, build_page


def mount(app: FastAPI) -> None:
    """Serves the page at `/` of `app`."""
    _mount(app, api_base="")


def _mount(app: FastAPI, api_base: str) -> None:
    page = build_page(api_base)
    assets = {asset.hashed_name: asset for asset in page.assets}
    for asset in (page.document, *page.assets):
        asset.codings  # noqa: B018 - compresses it now, not while the first browser waits

    async def send_document(request: Request) -> Response:
        return page.document.response(request, immutable=False)

    async def send_asset(request: Request) -> Response:
        asset = assets.get(request.path_params["name"])
        if asset is None:
            raise HTTPException(404)
        return asset.response(request, immutable=True)

    app.router.add_route("/", send_document, methods=["GET"], include_in_schema=False)
    app.router.add_route(
        f"/{ASSETS_PATH}/{{name}}", send_asset, methods=["GET"], include_in_schema=False
    )


def main() -> None:
    """Serves the page alone."""
    parser = argparse.ArgumentParser(prog="python -m cantata_web", description=main.__doc__)
    parser.add_argument("--api-base", default="http://127.0.0.1:8000", help="the speech server")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=7860)
    options = parser.parse_args()

    import uvicorn

    app = FastAPI()
    _mount(app, options.api_base)
    uvicorn.run(app, host=options.host, port=options.port, log_level="info")
