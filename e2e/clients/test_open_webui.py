"""The requests that Open WebUI 0.12 sends for what its users say and hear, with the settings of
docs/howto/open-webui.md. It is not installed here: its package brings hundreds of others."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from documented import HOWTOS, URL, fill_in, read_block

from .conftest import Address
from .listening import KEY, SENTENCES, assert_heard, assert_words, decode
from .speaking import speak

pytestmark = pytest.mark.e2e

PAGE = HOWTOS / "open-webui.md"
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


@pytest.fixture
def settings(server: Address) -> dict[str, str]:
    """The page's variables, with this server's address."""
    text = fill_in(read_block(PAGE, "open-webui.env"), {URL: server.http})
    return dict(line.split("=", 1) for line in text.splitlines())


async def test_the_settings_of_the_howto_speak(settings: dict[str, str]) -> None:
    base = settings["AUDIO_TTS_OPENAI_API_BASE_URL"]
    headers = {"Authorization": f"Bearer {settings['AUDIO_TTS_OPENAI_API_KEY']}"}
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        async with session.get(f"{base}/audio/models") as answer:
            models = [model["id"] for model in (await answer.json())["models"]]
        async with session.get(f"{base}/audio/voices") as answer:
            voices = {one["id"]: one["name"] for one in (await answer.json())["voices"]}
        assert models
        assert settings["AUDIO_TTS_VOICE"] in voices
        body = {
            "input": SENTENCES,
            "voice": settings["AUDIO_TTS_VOICE"],
            "model": settings["AUDIO_TTS_MODEL"],
        }
        async with session.post(f"{base}/audio/speech", json=body, headers=headers) as answer:
            assert answer.content_type == "audio/mpeg"
            assert_heard(*decode(await answer.read()))


async def test_the_settings_of_the_howto_hear(server: Address, settings: dict[str, str]) -> None:
    assert settings["AUDIO_STT_OPENAI_API_BASE_URL"] == f"{server.http}/v1"
    assert settings["AUDIO_STT_MODEL"] == "whisper-1"  # what the forms above send


def test_the_check_of_the_howto(server: Address, tmp_path: Path) -> None:
    check = fill_in(read_block(PAGE, "check"), {URL: server.http})
    subprocess.run(["bash", "-euc", check], cwd=tmp_path, check=True, timeout=60)
    samples, _ = decode((tmp_path / "morning.mp3").read_bytes())
    assert len(samples)
