"""The page as a Gradio app, on a speech server's own origin or alone in front of one elsewhere.

Gradio gives the page its shell; the controls are our own markup and the sound goes from the
WebSocket to an AudioWorklet, so that no audio passes through Gradio.
"""

from __future__ import annotations

import argparse
import html
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    import gradio as gr

HERE = Path(__file__).parent
STATIC_PATH = "/cantata_web"

# What the page asks Gradio for. Everything else is left to the API, so that a wrong path or method
# is answered in its words, and Gradio's uploads and queue are not open on the server's origin.
GRADIO_PATHS = ("/", "/theme.css", "/favicon.ico", "/manifest.json")
GRADIO_FOLDERS = ("/assets/", "/static/")

TABS = ("speak", "clone", "parallel", "metrics")
# In this order: later rules refine earlier ones.
STYLES = ("colours", "base", "controls", "stage", "tabs", "narrow", "forced")

# Runs once Gradio has put the markup into the page. Relative to the page's base, so that it also
# holds behind a proxy that serves the page under a prefix.
START_PAGE = f"""
import(new URL(".{STATIC_PATH}/page.js", document.baseURI))
  .then((page) => page.start(element.querySelector(".cantata")));
"""


def build_page(api_base: str = "") -> gr.Blocks:
    """The page; it calls the server at `api_base`, or the one that it came from."""
    import gradio as gr

    if api_base and not api_base.endswith("/"):
        api_base += "/"
    markup = Template(_read("markup/page.html")).substitute(
        api_base=html.escape(api_base, quote=True),
        **{tab: _read(f"markup/{tab}.html") for tab in TABS},
    )
    style = "".join(_read(f"styles/{name}.css") for name in STYLES)
    with gr.Blocks(title="Cantata", analytics_enabled=False, fill_width=True) as page:
        gr.HTML(
            f"<style>{style}</style>{markup}",
            apply_default_css=False,
            js_on_load=START_PAGE,
        )
    return page


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def mount(app: FastAPI) -> None:
    """Serves the page at `/` of `app`."""
    _mount(app, api_base="")


class _ScriptFiles(StaticFiles):
    """Has browsers ask before they reuse a script: a page of one release needs its own modules."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


class _PlainErrors:
    """Gives errors of the page's files to the app that it is mounted on, which has its own words
    for them, and takes requests that read only."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405, headers={"allow": "GET, HEAD"})
        failed = None

        async def send_unless_failed(message: Message) -> None:
            nonlocal failed
            if message["type"] == "http.response.start" and message["status"] >= 400:
                failed = message["status"]
            if failed is None:
                await send(message)

        await self._app(scope, receive, send_unless_failed)
        if failed is not None:
            # Gradio answers 400 for a folder.
            raise HTTPException(404 if failed < 500 else failed)


class _PageMount(Mount):
    """Takes only Gradio's paths from above."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path in GRADIO_PATHS or path.startswith(GRADIO_FOLDERS):
            return super().matches(scope)
        return Match.NONE, {}


def _mount(app: FastAPI, api_base: str) -> None:
    import gradio as gr

    app.mount(STATIC_PATH, _ScriptFiles(directory=HERE / "static"), name="cantata_web")
    # On an app that never starts: Gradio would start its queue with it, which looks for work every
    # millisecond, and this page gives it none.
    unstarted = FastAPI()
    gr.mount_gradio_app(
        unstarted,
        build_page(api_base),
        path="/",
        theme=gr.themes.Base(font=["system-ui", "sans-serif"], font_mono=["monospace"]),
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        enable_monitoring=False,
        mcp_server=False,
        favicon_path=str(HERE / "favicon.png"),
    )
    everything = unstarted.router.routes.pop()
    assert isinstance(everything, Mount)
    app.router.routes.append(
        _PageMount(everything.path, app=_PlainErrors(everything.app), name="page")
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
