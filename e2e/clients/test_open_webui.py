"""The requests that Open WebUI 0.12 sends for what its users say. It is not installed here: its
package brings hundreds of others."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from .conftest import Address
from .listening import KEY, assert_words
from .speaking import speak

pytestmark = pytest.mark.e2e

CHUNK_BYTES = 64 * 1024
HEADERS = {
    "Authorization": f"Bearer {KEY}",
    "X-OpenWebUI-User-Name": "Ada%20Lovelace",
    "X-OpenWebUI-User-Id": str(uuid4()),
    "X-OpenWebUI-User-Email": "ada@example.org",
    "X-OpenWebUI-User-Role": "admin",
}
"""With the headers that tell the user, which its operator may turn on."""


async def send_chunks(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]


async def post(server: Address, **body: Any) -> tuple[int, Any]:
    url = f"{server.http}/v1/audio/transcriptions"
    async with (
        aiohttp.ClientSession(trust_env=True) as session,
        session.post(url, headers=HEADERS, **body) as answer,
    ):
        return answer.status, await answer.json()


async def post_form(server: Address, language: str | None) -> tuple[int, Any]:
    """A form whose length is not known before: the file is read while it is sent."""
    form = aiohttp.FormData()
    form.add_field("model", "whisper-1")
    if language is not None:
        form.add_field("language", language)
    form.add_field("file", send_chunks(speak(server, "mp3")), filename=f"{uuid4()}.mp3")
    return await post(server, data=form)


async def test_its_form(server: Address) -> None:
    status, answer = await post_form(server, "en")
    assert status == 200
    assert_words(answer["text"])


async def test_a_language_that_is_not_served_is_left_out_the_second_time(server: Address) -> None:
    status, answer = await post_form(server, "de")
    assert status == 400
    assert "valid: en" in answer["error"]["message"]
    status, answer = await post_form(server, None)
    assert status == 200
    assert_words(answer["text"])


async def test_its_json(server: Address) -> None:
    """Its operator may choose it instead of the form."""
    sound = base64.b64encode(speak(server, "mp3")).decode()
    body = {"model": "whisper-1", "language": "en"}
    recording = {"data": sound, "format": "mp3"}
    status, answer = await post(server, json={**body, "input_audio": recording})
    assert status == 200, answer
    assert_words(answer["text"])
