"""Files that other services' clients get are tagged and signed as those of OpenAI's routes."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_service import FakeService, eventually
from live_server import Server, running

from cantata.api.settings import ServerSettings
from cantata.media.certificates import write_trial_certificate
from cantata.media.provenance import find_provenance
from cantata.media.signing import SigningFiles

pytest.importorskip("c2pa")

ELEVENLABS = "/v1/text-to-speech/clara"
HELLO = {"text": "hello"}
PHONES = {"phonemes": "h\u0259lO", "voice": "clara"}
CAPTIONED = {"input": "hello", "response_format": "flac"}


@pytest.fixture
async def signing(tmp_path: Path) -> AsyncIterator[Server]:
    service, files = FakeService(), SigningFiles(*write_trial_certificate(tmp_path))
    service.solo.capabilities = replace(service.solo.capabilities, phones=True)
    settings = ServerSettings(provenance="signed", signing=files)
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server


def find_state(file: bytes) -> str | None:
    found = find_provenance(file)
    assert found.synthetic, "it says so in any case"
    return None if found.manifest is None else found.manifest.state


@pytest.mark.parametrize(
    ("path", "body", "sign"),
    [
        (f"{ELEVENLABS}?output_format=mp3_44100_128", HELLO, {"query": "sign=true"}),
        (f"{ELEVENLABS}/stream?output_format=wav_44100", HELLO, {"query": "sign=true"}),
        ("/v1/speak?encoding=mp3", HELLO, {"query": "sign=true"}),
        ("/v1/speak?encoding=mulaw", HELLO, {"query": "sign=true"}),
        ("/dev/generate_from_phonemes?", PHONES, {"sign": True}),
    ],
)
async def test_a_file_is_signed_if_it_is_asked_for_whole(
    signing: Server, path: str, body: dict[str, Any], sign: dict[str, Any]
) -> None:
    async with httpx.AsyncClient(base_url=signing.url) as http:
        plain = await http.post(path, json=body)
        assert plain.headers["x-provenance"] == "tags"
        assert find_state(plain.content) is None
        query = f"&{sign['query']}" if "query" in sign else ""
        asked = {**body, **({"sign": True} if "sign" in sign else {})}
        signed = await http.post(path + query, json=asked)
    assert signed.headers["x-provenance"] == "self-signed"
    assert signed.headers["content-type"] == plain.headers["content-type"]
    assert find_state(signed.content) == "valid"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (f"{ELEVENLABS}/with-timestamps?output_format=mp3_44100_128", HELLO, "audio_base64"),
        ("/dev/captioned_speech", {**CAPTIONED, "stream": False}, "audio"),
    ],
)
async def test_a_file_in_one_object_is_signed(
    signing: Server, path: str, body: dict[str, Any], field: str
) -> None:
    async with httpx.AsyncClient(base_url=signing.url) as http:
        answer = await http.post(path, json=body)
    assert answer.headers["x-provenance"] == "self-signed"
    assert find_state(base64.b64decode(answer.json()[field])) == "valid"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{ELEVENLABS}?output_format=opus_48000_64&sign=true", HELLO),
        (f"{ELEVENLABS}/with-timestamps?output_format=pcm_16000&sign=true", HELLO),
        (f"{ELEVENLABS}/stream/with-timestamps?sign=true", HELLO),
        ("/v1/speak?encoding=linear16&container=none&sign=true", HELLO),
    ],
)
async def test_what_cannot_be_signed_is_refused(
    signing: Server, path: str, body: dict[str, Any]
) -> None:
    async with httpx.AsyncClient(base_url=signing.url) as http:
        answer = await http.post(path, json=body)
    assert answer.status_code == 400
    assert "sign" in answer.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{ELEVENLABS}?sign=true", HELLO),
        ("/v1/speak?sign=true", HELLO),
    ],
)
async def test_a_server_that_does_not_sign_says_so(
    http: httpx.AsyncClient, path: str, body: dict[str, Any]
) -> None:
    answer = await http.post(path, json=body)
    assert answer.status_code == 400
    assert "does not sign files" in answer.text
