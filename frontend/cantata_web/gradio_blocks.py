"""What the Gradio app shows: `StreamingSpeech` to try, and the endpoint `speak` for programs.

It imports Gradio; `gradio_app` imports it when somebody asks for the app.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
from fastapi import FastAPI
from starlette.routing import Mount

from cantata_web.streaming_speech import StreamingSpeech

MAX_S = 600.0
"""A request that takes longer is given up."""
KEPT_S = 600
"""Files are deleted after it."""
MAX_WAITING = 64
"""More calls are rejected."""
FIRST_TEXT = "It rained all night, but by the time we reached the harbour the sky had cleared."

# What `SpokenText` becomes on its way to the browser; here the browser makes it by itself.
_PLAY = """
(text, voice, speed) => ({
  text, complete: true, turn: crypto.randomUUID?.() ?? String(Math.random()),
  request: voice === "" ? { speed } : { voice, speed },
})
"""

OpenClient = Callable[[], httpx.AsyncClient]


def build_app(server_url: str, open_client: OpenClient, folder: Path) -> tuple[FastAPI, FastAPI]:
    """The app, and one whose lifespan runs it.

    Args:
        server_url: the speech server, for browsers; relative to the app's page.
        open_client: opens a client of the speech server, for `speak`.
        folder: for files that are made.
    """
    blocks = build_blocks(server_url, open_client, folder).queue(max_size=MAX_WAITING)
    # By default they look for work a thousand times a second.
    blocks._queue.sleep_when_free = 0.05
    blocks._queue.progress_update_sleep_when_free = 0.5
    parent = FastAPI()
    gr.mount_gradio_app(
        parent,
        blocks,
        path="/",
        theme=gr.themes.Base(font=["system-ui", "sans-serif"], font_mono=["monospace"]),
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        enable_monitoring=False,
        mcp_server=False,
        favicon_path=str(Path(__file__).parent / "favicon.png"),
    )
    mounted = parent.router.routes[-1]
    assert isinstance(mounted, Mount)
    app = mounted.app
    assert isinstance(app, FastAPI)
    app.uploaded_file_dir = str(folder)  # type: ignore[attr-defined]  # not that of all apps here
    return app, parent


def build_blocks(server_url: str, open_client: OpenClient, folder: Path) -> gr.Blocks:
    """The controls and what they do; arguments as in `build_app`."""

    async def speak(text: str, voice: str, speed: float, request: gr.Request) -> str:
        """Speaks a text; answers with an MP3 file."""
        fields: dict[str, Any] = {"input": text, "speed": speed, "response_format": "mp3"}
        if voice:
            fields["voice"] = voice
        key = request.headers.get("authorization")
        async with asyncio.timeout(MAX_S), open_client() as client:
            answer = await client.post(
                "v1/audio/speech", json=fields, headers={"authorization": key} if key else {}
            )
        if not answer.is_success:
            raise gr.Error(answer.json()["error"]["message"], print_exception=False)
        with tempfile.NamedTemporaryFile(
            dir=folder, prefix="speech-", suffix=".mp3", delete=False
        ) as file:
            file.write(answer.content)
        return file.name

    with gr.Blocks(
        title="Cantata in Gradio", analytics_enabled=False, delete_cache=(KEPT_S, KEPT_S)
    ) as blocks:
        gr.Markdown(
            "# Cantata in Gradio\nThe component `StreamingSpeech`. [The page](..) has more."
        )
        text = gr.Textbox(FIRST_TEXT, label="Text", lines=3)
        with gr.Row():
            voice = gr.Textbox(label="Voice", placeholder="the model's own")
            speed = gr.Slider(0.25, 4, 1, label="Speed")
        with gr.Row():
            play = gr.Button("Speak", variant="primary")
            save = gr.Button("Make a file")
        speech = StreamingSpeech(server_url=server_url)
        saved = gr.Audio(label="File", type="filepath", interactive=False, buttons=["download"])
        saved.GRADIO_CACHE = str(folder)
        play.click(None, [text, voice, speed], speech, js=_PLAY)
        # The speech server itself says how many may run.
        save.click(speak, [text, voice, speed], saved, api_name="speak", concurrency_limit=None)
    return blocks
