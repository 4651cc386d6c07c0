"""SIGTERM while pages of the Gradio app are open: they hold the server up only as long as they wait
for results."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from server_process import server_process, until_metric

APP = "/gradio/gradio_api"
TEXT = "A text that is under way."


async def begin_speech(http: httpx.AsyncClient, session: str) -> None:
    config = (await http.get("/gradio/config")).json()
    (speak,) = (one["id"] for one in config["dependencies"] if one["api_name"] == "speak")
    body = {"data": [TEXT, "", 1.0, ""], "fn_index": speak, "session_hash": session}
    (await http.post(f"{APP}/queue/join", json=body)).raise_for_status()


async def events(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.aiter_lines():
        if line.startswith("data:"):
            yield json.loads(line.removeprefix("data:"))


@pytest.mark.thorough
async def test_an_open_page_delays_nothing_and_speech_still_ends() -> None:
    async with (
        server_process(pages=True, connections={"drain_timeout_s": 3600}) as server,
        httpx.AsyncClient(base_url=server.url, timeout=60) as http,
        http.stream("GET", f"{APP}/heartbeat/idle") as idle,
        http.stream("GET", f"{APP}/heartbeat/busy") as busy,
    ):
        await begin_speech(http, "busy")
        async with http.stream("GET", f"{APP}/queue/data?session_hash=busy") as results:
            await until_metric(http, 'cantata_requests_running{model="solo"} 1.0')
            held = asyncio.create_task(busy.aread())
            server.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                # A body that is cut off raises.
                assert (await idle.aread()).startswith(b"data: ALIVE")
            assert (await http.get("/health")).json()["status"] == "stopping"
            assert not held.done(), "Gradio ends what a session runs when its heartbeat ends"
            server.let_sound()
            done = [one async for one in events(results) if one["msg"] == "process_completed"]
        assert [one["success"] for one in done] == [True]
        assert done[0]["output"]["data"][0]["path"].endswith(".mp3")
        assert (await held).startswith(b"data: ALIVE")
        status, log = await server.ended()
    assert (status, b"Traceback" in log, b"cut off" in log) == (-signal.SIGTERM, False, False)
