"""Uploads requests, has them answered, and reads the answers, as clients do."""

from __future__ import annotations

import json
from typing import Any

import httpx
from live_server import Server

FILES, BATCHES, SPEECH = "/v1/files", "/v1/batches", "/v1/audio/speech"
ENDED = ("completed", "failed", "cancelled", "expired")


def line(custom_id: str, url: str = SPEECH, **body: object) -> dict[str, object]:
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": body}


async def upload(http: httpx.AsyncClient, *lines: dict[str, object], purpose: str = "batch") -> str:
    data = "".join(json.dumps(one) + "\n" for one in lines).encode()
    answer = await http.post(FILES, data={"purpose": purpose}, files={"file": ("in.jsonl", data)})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def begin(
    http: httpx.AsyncClient, *lines: dict[str, object], endpoint: str = SPEECH, **more: object
) -> dict[str, Any]:
    body = {"input_file_id": await upload(http, *lines), "endpoint": endpoint}
    answer = await http.post(BATCHES, json={**body, "completion_window": "24h", **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def get(http: httpx.AsyncClient, id: str) -> dict[str, Any]:
    return dict((await http.get(f"{BATCHES}/{id}")).json())


async def until_ended(server: Server, http: httpx.AsyncClient, id: str) -> dict[str, Any]:
    store = server.app.state.context.jobs
    while True:
        seen = store.changes
        if (batch := await get(http, id))["status"] in ENDED:
            return batch
        await store.wait(seen)


async def read(http: httpx.AsyncClient, id: str) -> dict[str, dict[str, Any]]:
    """The lines of a file by their custom ids."""
    content = await http.get(f"{FILES}/{id}/content")
    assert content.status_code == 200
    lines = [json.loads(one) for one in content.text.splitlines()]
    return {one["custom_id"]: one for one in lines}
