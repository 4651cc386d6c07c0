"""A model that writes, spoken by one that speaks: the same text, the same samples, one request."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fake_chat import FakeChatModel
from fake_service import FakeService, eventually, expected_pcm
from live_server import Server, running

from cantata.api.settings import ReferenceSettings, ServerSettings
from cantata.contract.data.chat import Modality
from cantata.contract.data.errors import RequestFailed
from cantata.contract.data.request import Voice
from sounds import wav

CHAT = "/v1/chat/completions"
TEXT = "The sea is wide. It is deep, too! Who knows"
SENTENCES = ["The sea is wide.", "It is deep, too!", "Who knows"]


@pytest.fixture
def service() -> FakeService:
    service = FakeService()
    writer = FakeChatModel("writer", frozenset({Modality.TEXT}), (), 0)
    writer.behaviour.text = TEXT
    service.chat_models = {**service.chat_models, "writer": writer}
    service.solo.capabilities = replace(service.solo.capabilities, open_text=False, references=True)
    return service


@pytest.fixture
def writer(service: FakeService) -> FakeChatModel:
    model = service.chat_models["writer"]
    assert isinstance(model, FakeChatModel)
    return model


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return ServerSettings(references=ReferenceSettings(voices_dir=tmp_path / "voices"))


@pytest.fixture
async def server(service: FakeService, settings: ServerSettings) -> AsyncIterator[Server]:
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server


@pytest.fixture
async def http(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        yield client


def body(**fields: Any) -> dict[str, Any]:
    return {
        "model": "writer",
        "messages": [{"role": "user", "content": "Tell me of the sea."}],
        "modalities": ["text", "audio"],
        "audio": {"format": "pcm16"},
        **fields,
    }


def heard(message: dict[str, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(message["audio"]["data"]), "<i2")


def as_sent(samples: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(
        np.round(np.clip(samples[:, 0], -1, 1) * 32767).astype("<i2").tobytes(), "<i2"
    )


async def test_an_uploaded_voice_speaks(http: httpx.AsyncClient, service: FakeService) -> None:
    form = {"name": "Ada", "consent": "true", "ref_text": "Hello there."}
    made = await http.post("/v1/audio/voices", data=form, files={"audio_sample": wav()})
    assert made.status_code == 200, made.text
    for stream in (False, True):
        spoken = await http.post(
            CHAT, json=body(stream=stream, audio={"format": "pcm16", "voice": "ada"})
        )
        assert spoken.status_code == 200, spoken.text
        request = service.solo.counts.requests[-1]
        assert request.voice == "clara"
        assert request.reference is not None
        assert request.reference.transcript == "Hello there."
    error = (await http.post(CHAT, json=body(audio={"voice": "nobody"}))).json()["error"]
    assert (error["code"], error["param"]) == ("voice_not_found", "audio.voice")


async def test_its_sentences_are_spoken_one_by_one(
    http: httpx.AsyncClient, service: FakeService
) -> None:
    response = await http.post(CHAT, json=body(seed=5))
    message = response.json()["choices"][0]["message"]
    assert message["audio"]["transcript"] == TEXT
    spoken = service.solo.counts.requests
    assert [request.text for request in spoken] == SENTENCES
    assert {request.seed for request in spoken} == {5}
    parts = [expected_pcm(one, service.solo.behaviour) for one in SENTENCES]
    assert np.abs(heard(message).astype(int) - as_sent(np.concatenate(parts))).max() <= 1


async def test_open_text_is_one_utterance(http: httpx.AsyncClient, service: FakeService) -> None:
    service.solo.capabilities = replace(service.solo.capabilities, open_text=True)
    response = await http.post(CHAT, json=body())
    assert response.json()["choices"][0]["message"]["audio"]["transcript"] == TEXT
    assert [request.text for request in service.solo.counts.requests] == [TEXT]


async def test_sound_flows_before_the_text_has_ended(
    http: httpx.AsyncClient, service: FakeService, writer: FakeChatModel
) -> None:
    lines = (await http.post(CHAT, json=body(stream=True))).text.splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    deltas = [choice["delta"].get("audio") or {} for c in chunks for choice in c["choices"]]
    assert "".join(one.get("transcript") or "" for one in deltas) == TEXT
    first_sound = next(i for i, one in enumerate(deltas) if one.get("data"))
    last_text = max(i for i, one in enumerate(deltas) if one.get("transcript"))
    assert first_sound < last_text


async def test_sound_flows_before_a_sentence_has_ended(
    http: httpx.AsyncClient, service: FakeService, writer: FakeChatModel
) -> None:
    """The writer goes on only when the beginning of its sentence has sounded."""
    how = writer.behaviour
    how.text = "When the kettle boils, we shall have some tea. Who knows"
    how.may_continue, how.waits_at = asyncio.Event(), 9
    async with http.stream("POST", CHAT, json=body(stream=True)) as response:
        async for line in response.aiter_lines():
            if '"data":"' in line:
                how.may_continue.set()
    assert [request.text for request in service.solo.counts.requests] == [
        "When the kettle boils,",
        "we shall have some tea.",
        "Who knows",
    ]


async def test_nobody_waits_for_a_whole_answer_s_beginning(
    http: httpx.AsyncClient, service: FakeService, writer: FakeChatModel
) -> None:
    writer.behaviour.text = "When the kettle boils, we shall have some tea. Who knows"
    writer.behaviour.waits_at, writer.behaviour.may_continue = 9, asyncio.Event()
    asking = asyncio.create_task(http.post(CHAT, json=body()))
    await eventually(lambda: writer.counts.events == 9)
    writer.behaviour.may_continue.set()
    assert (await asking).status_code == 200
    assert service.solo.counts.requests[0].text == "When the kettle boils, we shall have some tea."


async def test_a_voice_finds_its_model(http: httpx.AsyncClient, service: FakeService) -> None:
    voice = "nora"
    service.duo.voices = (Voice(voice, "Nora"),)
    response = await http.post(CHAT, json=body(audio={"format": "pcm16", "voice": voice}))
    assert response.status_code == 200, response.text
    assert not service.solo.counts.requests
    assert {request.voice for request in service.duo.counts.requests} == {voice}


async def test_the_operator_says_who_speaks(
    http: httpx.AsyncClient, service: FakeService, writer: FakeChatModel
) -> None:
    writer.spoken_by = "duo"
    await http.post(CHAT, json=body())
    assert service.duo.counts.requests
    assert not service.solo.counts.requests


async def test_a_stop_text_is_not_spoken(http: httpx.AsyncClient, service: FakeService) -> None:
    response = await http.post(CHAT, json=body(stop="deep"))
    choice = response.json()["choices"][0]
    assert choice["message"]["audio"]["transcript"] == "The sea is wide. It is "
    assert choice["finish_reason"] == "stop"
    assert [one.text for one in service.solo.counts.requests] == [SENTENCES[0], "It is"]


async def test_text_alone_needs_no_voice(http: httpx.AsyncClient, service: FakeService) -> None:
    response = await http.post(CHAT, json=body(modalities=["text"]))
    assert response.json()["choices"][0]["message"]["content"] == TEXT
    assert not service.solo.counts.requests


async def test_a_fault_of_either_is_the_answer_s(
    http: httpx.AsyncClient, service: FakeService, writer: FakeChatModel
) -> None:
    service.solo.behaviour.error = RequestFailed("the voice broke")
    service.solo.behaviour.fail_after = 0
    response = await http.post(CHAT, json=body())
    assert (response.status_code, response.json()["error"]["code"]) == (500, "request_failed")
    await eventually(lambda: writer.counts.open == service.solo.counts.open == 0)


async def test_a_client_that_leaves_ends_both(
    server: Server, service: FakeService, writer: FakeChatModel
) -> None:
    service.solo.behaviour.may_sound = asyncio.Event()
    async with httpx.AsyncClient(base_url=server.url) as client:
        asking = asyncio.create_task(client.post(CHAT, json=body()))
        await eventually(lambda: service.solo.counts.open == 1)
        asking.cancel()
        await asyncio.wait([asking])
    await eventually(lambda: writer.counts.open == service.solo.counts.open == 0)
    assert service.solo.counts.aborted == 1


async def test_it_is_listed_as_a_model_that_speaks(http: httpx.AsyncClient) -> None:
    listed = {one["id"]: one for one in (await http.get("/v1/models")).json()["data"]}
    assert listed["writer"]["output_modalities"] == ["text", "audio"]
    assert listed["reader"]["output_modalities"] == ["text"]
