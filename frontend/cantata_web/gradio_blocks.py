"""The Gradio app: its tabs, and how it is mounted.

It imports Gradio; `gradio_app` imports it when somebody asks for the app.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
from fastapi import FastAPI
from starlette.routing import Mount

from cantata_web import gradio_tabs
from cantata_web.gradio_calls import ServerClient, authorization
from cantata_web.gradio_offer import Offer, read_offer
from cantata_web.gradio_plain import PlainBlocks

KEPT_S = 600
"""Files are deleted after it."""
MAX_WAITING = 64
"""More calls are rejected."""
MAX_UPLOAD = "64mb"
_INTRODUCTION = (
    "# Cantata in Gradio\nSpeech with the component `StreamingSpeech`, and what else this server "
    "offers. [The page](..) has more; programs call the endpoints below with `gradio_client`."
)

_NOTHING = (
    "The server offers nothing yet: it is loading, or lists its models only for those with an API "
    "key. Load this page again in a moment."
)

OpenClient = Callable[[], httpx.AsyncClient]


def build_app(
    server_url: str, open_client: OpenClient, offer: Offer, folder: Path
) -> tuple[FastAPI, FastAPI]:
    """The app, and one whose lifespan runs it.

    Args:
        server_url: the speech server, for browsers; relative to the app's page.
        open_client: opens a client of the speech server, for the endpoints.
        offer: what the menus show until the page has asked.
        folder: for files that are made or uploaded.
    """
    # WHY: Gradio does this at the app's first call, in case a function draws plots: a second in
    # which this process answers nobody. Here it comes with Gradio's own imports, before any call.
    if find_spec("matplotlib") is not None:
        import_module("matplotlib").get_backend()
    blocks = build_blocks(server_url, ServerClient(open_client, folder), offer)
    blocks.queue(max_size=MAX_WAITING, default_concurrency_limit=None)
    for block in blocks.blocks.values():
        block.GRADIO_CACHE = str(folder)  # not that of all apps here
    parent = FastAPI()
    gr.mount_gradio_app(
        parent,
        blocks,
        path="/",
        theme=gr.themes.Base(font=["system-ui", "sans-serif"], font_mono=["monospace"]),
        footer_links=["api"],
        run_history=False,
        ssr_mode=False,
        enable_monitoring=False,
        mcp_server=False,  # needs mcp 1, and vLLM brings mcp 2
        max_file_size=MAX_UPLOAD,
        favicon_path=str(Path(__file__).parent / "favicon.png"),
    )
    mounted = parent.router.routes[-1]
    assert isinstance(mounted, Mount)
    app = mounted.app
    assert isinstance(app, FastAPI)
    app.uploaded_file_dir = str(folder)  # type: ignore[attr-defined]
    return app, parent


def set_polling(app: Any, interval_s: float) -> None:
    """How often Gradio's queue looks for calls; by default it does a thousand times a second.

    Args:
        app: of `build_app`.
        interval_s: between two looks, each of which wakes this process. A tenth as often it looks
            for progress to tell.
    """
    queue = app.get_blocks()._queue
    queue.sleep_when_free, queue.progress_update_sleep_when_free = interval_s, 10 * interval_s


def offer_endpoints(app: Any, offer: Offer) -> None:
    """Offer programs the endpoints of what the server offers.

    Args:
        app: of `build_app`.
        offer: as the server has just told it.
    """
    blocks = app.get_blocks()
    served = {name.lower() for name in gradio_tabs.list_tabs(offer)}
    changed = False
    for call in blocks.fns.values():
        if call.api_name in gradio_tabs.ENDPOINTS:
            visibility = "public" if call.api_name in served else "private"
            changed |= call.api_visibility != visibility
            call.api_visibility = visibility
    if changed:  # what Gradio keeps of it
        blocks.config = blocks.get_config_file()
        app.api_info = app.all_app_info = None
        getattr(app, "page_api_info", {}).clear()


def build_blocks(server_url: str, server: ServerClient, offer: Offer) -> gr.Blocks:
    """The tabs and what they do; arguments as in `build_app`."""
    with PlainBlocks(
        server.folder,
        title="Cantata in Gradio",
        analytics_enabled=False,
        delete_cache=(KEPT_S, KEPT_S),
    ) as blocks:
        gr.Markdown(_INTRODUCTION)
        first = gradio_tabs.first_tab(offer)
        nothing = gr.Markdown(_NOTHING, visible=first is None)
        with gr.Tabs(selected=first) as all_tabs:
            tabs = [
                gradio_tabs.add_speak(server, server_url, offer),
                gradio_tabs.add_clone(server, offer),
                gradio_tabs.add_chat(server, server_url, offer),
                gradio_tabs.add_draw(server, offer),
                gradio_tabs.add_transcribe(server, offer),
            ]

        followers = [
            nothing,
            all_tabs,
            *(component for tab in tabs for component in tab.components),
        ]

        async def refresh(request: gr.Request) -> list[Any]:
            """Models may have been loaded since the app was built."""
            try:
                async with server.open_client() as client:
                    now = await read_offer(client, authorization(request))
            except httpx.HTTPError:
                now = offer  # what the server answers to a call says why
            if now == offer:
                return [gr.skip() for _ in followers]  # nothing moves beneath the user's hand
            changes = [change for tab in tabs for change in tab.refresh(now)]
            now_first = gradio_tabs.first_tab(now)
            # A tab that the user has opened meanwhile stays open.
            opened = gr.skip() if now_first == first else gr.Tabs(selected=now_first)
            return [gr.Markdown(visible=now_first is None), opened, *changes]

        blocks.load(
            refresh,
            None,
            followers,
            api_visibility="private",
            show_progress="hidden",
        )
    return blocks
