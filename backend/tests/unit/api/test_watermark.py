"""Whatever speaks, and however its sound is sent, its samples are marked."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import httpx
import numpy as np
import pytest
from fake_service import FakeService, eventually, expected_pcm
from live_server import Server, running

from cantata.api.settings import ServerSettings
from cantata.audio.pcm import encode_s16le
from cantata.contract.service import Samples
from cantata.watermark.marker import Marker
from cantata.watermark.pattern import draw_signs

KEY = b"0123456789abcdef"


@pytest.fixture
async def marking() -> AsyncIterator[Server]:
    service = FakeService()
    async with running(service, ServerSettings(watermark_key=KEY)) as server:
        await eventually(lambda: service.ready)
        yield server


def marked(samples: Samples) -> bytes:
    return encode_s16le(Marker(draw_signs(KEY), 24_000, samples.shape[1]).feed(samples))


async def test_speech_is_marked_over_every_route(marking: Server) -> None:
    expected = marked(expected_pcm("hello", marking.service.solo.behaviour))
    speech: dict[str, Any] = {"input": "hello", "response_format": "pcm"}
    raw = {"encoding": "linear16", "container": "none"}
    async with httpx.AsyncClient(base_url=marking.url) as http:
        whole = await http.post("/v1/audio/speech", json=speech)
        batch = await http.post(
            "/v1/audio/speech/batch", json={"requests": [{"custom_id": "a", **speech}]}
        )
        deepgram = await http.post("/v1/speak", params=raw, json={"text": "hello"})
    parts = whole.content, base64.b64decode(batch.json()["audio"]), deepgram.content
    for sound in parts:
        found, wanted = (np.frombuffer(one, "<i2").astype(int) for one in (sound, expected))
        # Where the pieces are cut moves a float's last bit.
        assert np.abs(found - wanted).max() <= 1


async def test_answers_are_marked(marking: Server) -> None:
    body = {
        "messages": [{"role": "user", "content": "hi"}],
        "modalities": ["text", "audio"],
        "audio": {"format": "wav"},
    }
    async with httpx.AsyncClient(base_url=marking.url, timeout=30) as http:
        with_mark = (await http.post("/v1/chat/completions", json=body)).json()
    service = FakeService()
    async with (
        running(service) as plain,
        httpx.AsyncClient(base_url=plain.url, timeout=30) as http,
    ):
        await eventually(lambda: service.ready)
        without = (await http.post("/v1/chat/completions", json=body)).json()
    message, unmarked = (one["choices"][0]["message"]["audio"] for one in (with_mark, without))
    assert message["transcript"] == unmarked["transcript"]
    assert len(message["data"]) == len(unmarked["data"])
    assert message["data"] != unmarked["data"]
