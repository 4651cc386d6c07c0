"""POST /v1/chat/completions: whole answers, in text and spoken."""

from __future__ import annotations

import asyncio
import base64
import io
import time
import wave
from typing import Any

import av
import httpx
import numpy as np
import pytest
from fake_chat import PIECE, collect_sound
from fake_service import eventually
from live_server import Server

from cantata.api.chat.transcripts import Transcripts
from cantata.contract.data.chat import Message, Role, TextPart
from cantata.contract.data.errors import InvalidRequest

CHAT = "/v1/chat/completions"
SPOKEN: dict[str, Any] = {"modalities": ["text", "audio"]}


def asking(text: str = "Good morning.", **options: Any) -> dict[str, Any]:
    return {"model": "omni", "messages": [{"role": "user", "content": text}], **options}


async def answered(http: httpx.AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
    response = await http.post(CHAT, json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def spoken_samples(text: str) -> np.ndarray[Any, Any]:
    """What the fake model says, at its own rate."""
    pieces = [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
    return np.concatenate([collect_sound(piece, 400) for piece in pieces])


async def test_an_answer_in_text(server: Server, http: httpx.AsyncClient) -> None:
    before = int(time.time())
    response = await http.post(CHAT, json=asking())
    assert response.headers["content-type"] == "application/json"
    answer = response.json()
    assert answer["object"] == "chat.completion"
    assert answer["id"].startswith("chatcmpl-")
    assert before <= answer["created"] <= time.time()
    assert answer["model"] == "omni"
    (choice,) = answer["choices"]
    assert choice["message"] == {
        "role": "assistant",
        "content": "Good morning.",
        "refusal": None,
        "audio": None,
    }
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    assert answer["usage"] == {
        "prompt_tokens": 1,
        "completion_tokens": 5,
        "total_tokens": 6,
        "prompt_tokens_details": {"audio_tokens": 0, "cached_tokens": 0},
        "completion_tokens_details": {
            "text_tokens": 5,
            "audio_tokens": 0,
            "reasoning_tokens": 0,
        },
    }
    assert server.service.omni.counts.requests[-1].voice is None


@pytest.mark.parametrize("audio_format", [None, "wav", "mp3", "aac", "flac", "opus", "pcm16"])
async def test_a_spoken_answer(http: httpx.AsyncClient, audio_format: str | None) -> None:
    text = "A longer answer, spoken while it is written, and whole when it arrives. " * 3
    audio = {} if audio_format is None else {"audio": {"format": audio_format, "voice": "alloy"}}
    answer = await answered(http, asking(text, **SPOKEN, **audio))
    message = answer["choices"][0]["message"]
    assert message["content"] is None
    audio = message["audio"]
    assert audio["id"].startswith("audio_")
    assert audio["transcript"] == text
    assert audio["expires_at"] == pytest.approx(time.time() + 3600, abs=60)
    expected = spoken_samples(text)
    seconds = len(expected) / 16_000
    data = base64.b64decode(audio["data"])
    if audio_format == "pcm16":
        # At 24 kHz, whatever the model's own rate is.
        assert len(data) / 2 / 24_000 == pytest.approx(seconds, abs=0.001)
    elif audio_format in (None, "wav"):
        # Complete: the header has the length, and Python's strict reader gets every sample.
        with wave.open(io.BytesIO(data)) as file:
            assert (file.getframerate(), file.getnchannels()) == (16_000, 1)
            assert file.getnframes() == len(expected)
            heard = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32767
        np.testing.assert_allclose(heard, expected[:, 0], atol=1e-4)
    else:
        with av.open(io.BytesIO(data), "r") as encoded:
            frames = list(encoded.decode(audio=0))
        samples = sum(frame.samples for frame in frames) / frames[0].sample_rate
        # Two frames of AAC at 16 kHz, which decoders prepend, are 0.13 s.
        assert samples == pytest.approx(seconds, abs=0.15)
    details = answer["usage"]["completion_tokens_details"]
    assert details["audio_tokens"] == np.ceil(seconds / 0.05)
    tokens = details["audio_tokens"] + details["text_tokens"]
    assert answer["usage"]["completion_tokens"] == tokens


async def test_what_the_model_is_asked(server: Server, http: httpx.AsyncClient) -> None:
    await answered(
        http,
        {
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Hi."}]},
                {"role": "assistant", "content": "Hello."},
                {"role": "user", "content": "Bye.", "name": "ann"},
            ],
            "modalities": ["audio", "text"],
            "audio": {"voice": {"id": "chelsie"}},
            "max_tokens": 9,
            "max_completion_tokens": 7,
            "seed": 3,
            "temperature": 0,
            "top_p": 0.5,
            "top_k": -1,
            "repetition_penalty": 1.1,
            "n": 1,
            "presence_penalty": -0.5,
            "frequency_penalty": 2,
            "logprobs": False,
            "tools": [],
            "tool_choice": "auto",
            "response_format": {"type": "text"},
            "user": "ignored",
            "stop": None,
        },
    )
    request = server.service.omni.counts.requests[-1]
    assert request.messages == (
        Message(Role.SYSTEM, (TextPart("Be brief."),)),
        Message(Role.USER, (TextPart("Hi."),)),
        Message(Role.ASSISTANT, (TextPart("Hello."),)),
        Message(Role.USER, (TextPart("Bye."),)),
    )
    assert (request.voice, request.max_tokens, request.seed) == ("chelsie", 7, 3)
    assert (request.temperature, request.top_p, request.top_k) == (0, 0.5, 0)
    assert request.repetition_penalty == 1.1
    assert (request.presence_penalty, request.frequency_penalty) == (-0.5, 2.0)


async def test_an_answer_that_is_cut(http: httpx.AsyncClient) -> None:
    answer = await answered(http, asking("abcdefghi", max_tokens=2))
    assert answer["choices"][0]["message"]["content"] == "abcdef"
    assert answer["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("stop", ["efg", ["x", "efg", "fgh"]])
async def test_a_stop_text_ends_the_answer(
    server: Server, http: httpx.AsyncClient, stop: str | list[str]
) -> None:
    # In pieces of three characters: it spans two of them.
    answer = await answered(http, asking("abcdefghijkl" * 100, stop=stop))
    assert answer["choices"][0]["message"]["content"] == "abcd"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] == 3
    counts = server.service.omni.counts
    assert (counts.events, counts.aborted, counts.open) == (3, 1, 0)
    metrics = (await http.get("/metrics")).text
    assert 'cantata_speech_stream_completed_total{model="omni"} 1.0' in metrics


async def test_what_only_looked_like_a_stop_text_leaves_at_the_end(
    http: httpx.AsyncClient,
) -> None:
    answer = await answered(http, asking("To the END", stop="ENDING"))
    assert answer["choices"][0]["message"]["content"] == "To the END"
    answer = await answered(http, asking("To the END", stop="ENDING", **SPOKEN))
    assert answer["choices"][0]["message"]["audio"]["transcript"] == "To the END"


async def test_a_spoken_answer_stands_for_itself_later(
    server: Server, http: httpx.AsyncClient
) -> None:
    first = await answered(http, asking("The kettle is on.", **SPOKEN))
    spoken = {"role": "assistant", "audio": {"id": first["choices"][0]["message"]["audio"]["id"]}}
    messages = [{"role": "user", "content": "?"}, spoken, {"role": "user", "content": "Again?"}]
    await answered(http, {"messages": messages})
    request = server.service.omni.counts.requests[-1]
    assert request.messages[1] == Message(Role.ASSISTANT, (TextPart("The kettle is on."),))


def test_transcripts_expire_and_are_bounded() -> None:
    now = [0.0]
    kept = Transcripts(max_characters=2000, clock=lambda: now[0])
    kept.keep("a", "first")
    assert kept.find("a", "p") == "first"
    now[0] = 3601
    with pytest.raises(InvalidRequest, match="expired") as error:
        kept.find("a", "p")
    assert error.value.param == "p"
    for number in range(100):
        kept.keep(str(number), "x" * 100)
    held = 0
    for number in range(100):
        try:
            kept.find(str(number), "p")
        except InvalidRequest:
            continue
        held += 1
        assert number > 90
    assert held == 2000 // 356
    kept.keep("huge", "x" * 5000)
    assert kept.find("99", "p")


async def test_a_client_that_leaves_frees_its_request(
    server: Server, http: httpx.AsyncClient
) -> None:
    model = server.service.omni
    model.behaviour.may_continue = asyncio.Event()
    asked = asyncio.create_task(http.post(CHAT, json=asking(**SPOKEN)))
    await eventually(lambda: model.counts.events == 1)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await eventually(lambda: model.counts.open == 0)
    assert model.counts.aborted == 1
    metrics = (await http.get("/metrics")).text
    assert 'cantata_aborts_total{model="omni",reason="client_left"} 1.0' in metrics


async def test_models_say_what_they_take_and_make(http: httpx.AsyncClient) -> None:
    listed = {model["id"]: model for model in (await http.get("/v1/models")).json()["data"]}
    told = {
        name: (model["input_modalities"], model["output_modalities"])
        for name, model in listed.items()
    }
    assert told == {
        "solo": (["text"], ["audio"]),
        "duo": (["text"], ["audio"]),
        "omni": (["text", "audio", "image", "video"], ["text", "audio"]),
        "reader": (["text", "image"], ["text"]),
        "painter": (["text"], ["image"]),
        "editor": (["text", "image"], ["image"]),
        "ears": (["audio"], ["text"]),
    }
    assert (await http.get("/v1/models/omni")).json() == listed["omni"]
    assert (await http.get("/v1/models/tts-1")).json() == listed["solo"]
    assert (await http.get("/v1/models/gpt-image-1")).json() == listed["painter"]
    missing = (await http.get("/v1/models/gpt-9")).json()["error"]["message"]
    assert all(name in missing for name in listed)
