"""POST /v1/audio/transcriptions and /v1/audio/translations: forms in, OpenAI's answers out."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile
from fake_service import eventually
from live_server import Server

from cantata.api.settings import ServerSettings
from cantata.contract.data.errors import RequestFailed
from cantata.media.request_media import MediaLimits

TRANSCRIBE, TRANSLATE = "/v1/audio/transcriptions", "/v1/audio/translations"
RECORDING = Path(__file__).parents[4] / "docs" / "voice" / "clara.mp3"
RATE = 16_000


def sound_file(
    sound: np.ndarray[Any, Any], rate: int = RATE, form: str = "WAV", subtype: str | None = None
) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, sound, rate, format=form, subtype=subtype)
    return file.getvalue()


def spoken(times: int = 1, pause_s: float = 2.0) -> bytes:
    """The recording, several times with pauses between."""
    sound, rate = soundfile.read(RECORDING, dtype="float32")
    pause = np.zeros(int(pause_s * rate), np.float32)
    return sound_file(np.concatenate([part for _ in range(times) for part in (sound, pause)]), rate)


async def post(
    http: httpx.AsyncClient, data: bytes, url: str = TRANSCRIBE, **fields: Any
) -> httpx.Response:
    return await http.post(url, data=fields, files={"file": ("speech.wav", data)})


async def transcribe(http: httpx.AsyncClient, data: bytes, **fields: Any) -> dict[str, Any]:
    response = await post(http, data, **fields)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def fail(
    http: httpx.AsyncClient, data: bytes, status: int, param: str | None, **fields: Any
) -> str:
    response = await post(http, data, **fields)
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["param"] == param
    return str(error["message"])


def read_events(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


async def test_a_recording_is_cut_where_nobody_speaks(
    server: Server, http: httpx.AsyncClient
) -> None:
    answer = await transcribe(http, spoken(3), model="whisper-1")
    counts = server.service.ears.counts
    assert counts.finished == 3
    assert counts.open == 0
    seconds = [len(sound) / RATE for sound in counts.sounds]
    assert all(3 < length < 5 for length in seconds)
    words = [f"word{n}" for length in seconds for n in range(int(length / 0.5))]
    assert answer["text"].split() == words
    assert set(answer) == {"text", "usage"}
    assert answer["usage"]["type"] == "duration"
    assert answer["usage"]["seconds"] > sum(seconds)


async def test_silence_has_no_words_and_is_not_recognized(
    server: Server, http: httpx.AsyncClient
) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 5 * RATE)
    for sound in (np.zeros(5 * RATE), noise, 0.3 * np.sin(np.arange(5 * RATE) * 0.1)):
        assert (await transcribe(http, sound_file(sound)))["text"] == ""
    assert not server.service.ears.counts.requests


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        ({}, {"segments"}),
        ({"timestamp_granularities[]": "word"}, {"words"}),
        ({"timestamp_granularities[]": ["word", "segment"]}, {"words", "segments"}),
        ({"timestamp_granularities": '["word"]'}, {"words"}),
    ],
)
async def test_verbose_answers_have_what_was_asked_for(
    server: Server, http: httpx.AsyncClient, fields: dict[str, Any], keys: set[str]
) -> None:
    answer = await transcribe(http, spoken(2), response_format="verbose_json", **fields)
    assert set(answer) == {"task", "language", "duration", "text", "usage"} | keys
    assert (answer["task"], answer["language"]) == ("transcribe", "en")
    for word in answer.get("words", []):
        assert set(word) == {"word", "start", "end", "probability"}
    segments = answer.get("segments", [])
    assert [segment["id"] for segment in segments] == list(range(len(segments)))
    assert all(a["end"] <= b["start"] for a, b in pairwise(segments))
    if segments:
        assert " ".join(segment["text"] for segment in segments) == answer["text"]
        # The second time it is said, it is timed by the recording, not by the segment.
        first = server.service.ears.counts.sounds[0]
        assert segments[-1]["start"] >= len(first) / RATE


async def test_subtitles(http: httpx.AsyncClient) -> None:
    srt = await post(http, spoken(), response_format="srt")
    assert srt.headers["content-type"].startswith("application/x-subrip")
    number, times, text, *_ = srt.text.split("\n")
    assert number == "1"
    assert times[13:16] == "-->"
    assert text.startswith("word0 word1")
    vtt = await post(http, spoken(), response_format="vtt")
    assert vtt.text.startswith("WEBVTT\n\n00:00:0")
    assert vtt.text.split("\n")[3].startswith("word0 word1")
    plain = await post(http, spoken(), response_format="text")
    assert plain.text.startswith("word0 word1")


async def test_a_stream_tells_each_part_as_it_is_heard(
    server: Server, http: httpx.AsyncClient
) -> None:
    response = await post(http, spoken(3), stream="true", **{"include[]": "logprobs"})
    events = read_events(response.text)
    assert [event["type"] for event in events] == [
        *["transcript.text.delta"] * 3,
        events[-1]["type"],
    ]
    *deltas, done = events
    assert done["type"] == "transcript.text.done"
    assert "".join(delta["delta"] for delta in deltas) == done["text"]
    tokens = [token["token"] for delta in deltas for token in delta["logprobs"]]
    assert tokens == [token["token"] for token in done["logprobs"]]
    assert [delta["start"] for delta in deltas] == sorted(delta["start"] for delta in deltas)
    assert server.service.ears.counts.open == 0


async def test_parts_are_joined_as_their_language_writes_them(
    server: Server, http: httpx.AsyncClient
) -> None:
    server.service.ears.behaviour.text = "\u4eca\u5929\u4e0b\u96e8\u3002"
    whole = server.service.ears.behaviour.text * 3
    assert (await transcribe(http, spoken(3)))["text"] == whole
    response = await post(http, spoken(3), stream="true")
    *deltas, done = read_events(response.text)
    assert len(deltas) == 3
    assert "".join(delta["delta"] for delta in deltas) == done["text"] == whole


async def test_options_reach_the_model(server: Server, http: httpx.AsyncClient) -> None:
    await transcribe(
        http,
        spoken(),
        model="ears",
        language="de",
        prompt="Guten Tag.",
        temperature="0.4",
        hotwords=["Cantata", "vLLM"],
    )
    (request,) = server.service.ears.counts.requests
    assert (request.language, request.translate, request.temperature) == ("de", False, 0.4)
    assert request.prompt == "Cantata, vLLM Guten Tag."
    assert request.batch


async def test_the_names_that_openais_newer_models_have(
    server: Server, http: httpx.AsyncClient
) -> None:
    names = {"keywords[]": ["Cantata", "vLLM"]}
    one = await transcribe(
        http, spoken(), response_format="verbose_json", **names, **{"languages[]": ["de"]}
    )
    assert one["language"] == "de"
    await transcribe(http, spoken(), **{"languages[]": ["de", "en"]})
    first, second = server.service.ears.counts.requests
    assert (first.language, first.prompt, second.language) == ("de", "Cantata, vLLM", None)
    told = await fail(http, spoken(), 400, "languages", **{"languages[]": ["de", "xx"]})
    assert told == "languages 'xx': valid: en, de"


async def test_translations(server: Server, http: httpx.AsyncClient) -> None:
    response = await post(http, spoken(), TRANSLATE, response_format="verbose_json")
    assert response.json()["task"] == "translate"
    assert server.service.ears.counts.requests[0].translate
    server.service.ears.translates = False
    assert "translates nothing" in await fail(http, spoken(), 400, "model", url=TRANSLATE)


@pytest.mark.parametrize("form", ["WAV", "FLAC", "OGG", "MP3"])
@pytest.mark.parametrize("rate", [8000, 44_100])
async def test_every_container(http: httpx.AsyncClient, form: str, rate: int) -> None:
    sound, own_rate = soundfile.read(RECORDING, dtype="float32")
    places = np.arange(0, len(sound), own_rate / rate).astype(int)
    stereo = np.stack([sound[places], sound[places]], axis=1)
    answer = await transcribe(http, sound_file(stereo, rate, form))
    assert answer["text"].startswith("word0")


async def test_seven_channels_and_8_bit(http: httpx.AsyncClient) -> None:
    sound, rate = soundfile.read(RECORDING, dtype="float32")
    many = sound_file(np.repeat(sound[:, None], 8, axis=1), rate)
    assert (await transcribe(http, many))["text"].startswith("word0")
    assert (await transcribe(http, sound_file(sound, rate, subtype="PCM_U8")))["text"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a readable sound file"),
        (b"hello, this is text", "not a readable sound file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "not a readable sound file"),
        (b"ID3" + bytes(50), "cannot be decoded"),
        (sound_file(np.zeros(0)), "0 s long"),
        (sound_file(np.zeros(400), 4000, subtype="PCM_U8"), "4000 Hz; valid: 8000 to 192000"),
    ],
)
async def test_what_is_no_sound_is_refused(
    server: Server, http: httpx.AsyncClient, data: bytes, said: str
) -> None:
    message = await fail(http, data, 400, "file")
    assert said in message
    assert server.service.ears.counts.open == 0


@pytest.mark.parametrize(
    ("fields", "param", "said"),
    [
        ({"response_format": "xml"}, "response_format", "json"),
        ({"temperature": "7"}, "temperature", "1"),
        ({"timestamp_granularities[]": "letter"}, "timestamp_granularities[0]", "word"),
        ({"stream": "true", "response_format": "srt"}, "response_format", "cannot be streamed"),
        ({"chunking_strategy": '{"type": "server_vad", "threshold": 3}'}, None, "threshold"),
        ({"chunking_strategy": "{"}, "chunking_strategy", "JSON"),
        ({"hotwords": '["a"'}, "hotwords", "JSON"),
        ({"prompt": "a" * 5000}, "prompt", "4096"),
        ({"language": "xx"}, "language", "valid: en, de"),
        ({"model": "solo"}, "model", "no model 'solo' that transcribes; served: ears"),
    ],
)
async def test_fields_that_are_wrong_are_named(
    http: httpx.AsyncClient, fields: dict[str, str], param: str | None, said: str
) -> None:
    status = 404 if fields.get("model") else 400
    response = await post(http, spoken(), **fields)
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert said in error["message"]
    if param is not None:
        assert error["param"] == param


async def test_forms_that_are_no_forms(http: httpx.AsyncClient) -> None:
    two = [("file", ("a.wav", spoken())), ("file", ("b.wav", spoken()))]
    response = await http.post(TRANSCRIBE, files=two)
    assert "2 files" in response.json()["error"]["message"]
    response = await http.post(TRANSCRIBE, data={"file": "text"}, files={"x": ("x", b"")})
    assert response.status_code == 400
    assert "not text" in response.json()["error"]["message"]
    response = await http.post(TRANSCRIBE, content=b"x", headers={"content-type": "audio/wav"})
    assert "must be a form" in response.json()["error"]["message"]
    response = await http.post(TRANSCRIBE, files={"x": ("x", b"")})
    assert "0 files" in response.json()["error"]["message"]


async def test_a_failed_segment_fails_its_request_alone(
    server: Server, http: httpx.AsyncClient
) -> None:
    ears = server.service.ears
    ears.behaviour.error = RequestFailed("the speech could not be recognized")
    response = await post(http, spoken(3))
    assert response.status_code == 500
    assert response.json()["error"]["message"] == "the speech could not be recognized"
    await eventually(lambda: ears.counts.open == 0)
    ears.behaviour.error = None
    assert (await transcribe(http, spoken()))["text"]


async def test_a_client_that_leaves_ends_the_work(server: Server, http: httpx.AsyncClient) -> None:
    ears = server.service.ears
    ears.behaviour.may_finish = asyncio.Event()
    request = asyncio.create_task(post(http, spoken(6), stream="true"))
    await eventually(lambda: ears.counts.open == 2)
    request.cancel()
    await eventually(lambda: ears.counts.open == 0)
    assert ears.counts.max_open <= 3
    assert ears.counts.finished == 0
    wanted = 'cantata_transcriptions_total{model="ears",outcome="aborted"} 1.0'
    async with asyncio.timeout(30):
        while wanted not in (await http.get("/metrics")).text:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_recording_in_json(server: Server, http: httpx.AsyncClient) -> None:
    data = base64.b64encode(spoken()).decode()
    sent = {"input_audio": {"data": data, "format": "wav"}, "language": "de", "prompt": None}
    response = await http.post(TRANSCRIBE, json=sent)
    assert response.status_code == 200, response.text
    assert response.json()["text"].startswith("word0 word1")
    assert server.service.ears.counts.requests[0].language == "de"


@pytest.mark.parametrize(
    "settings", [ServerSettings(media=MediaLimits(max_bytes=1 << 20))], ids=["small"]
)
@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        ({}, 400, "input_audio"),
        ({"input_audio": {"data": "no sound!"}}, 400, "input_audio.data"),
        ({"input_audio": {"data": "UklGRg=="}}, 400, "is not a readable sound file"),
        (
            {"input_audio": {"data": "UklGRg=="}, "stream": True, "response_format": "vtt"},
            400,
            "stream",
        ),
        ({"input_audio": {"data": "UklGRg=="}, "temperature": "1"}, 400, "temperature"),
        ({"input_audio": {"data": "A" * (3 << 20)}}, 413, "send a form"),
    ],
)
async def test_json_that_is_wrong(
    server: Server, http: httpx.AsyncClient, sent: dict[str, Any], status: int, said: str
) -> None:
    response = await http.post(TRANSCRIBE, json=sent)
    assert response.status_code == status, response.text
    assert said in response.json()["error"]["message"]


@pytest.mark.parametrize("settings", [ServerSettings(max_recording_bytes=100_000)])
async def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    server: Server, http: httpx.AsyncClient
) -> None:
    response = await post(http, bytes(2 << 20))
    assert response.status_code == 413


async def test_models_are_listed(http: httpx.AsyncClient) -> None:
    models = (await http.get("/v1/models")).json()["data"]
    (ears,) = [model for model in models if model["id"] == "ears"]
    assert (ears["input_modalities"], ears["output_modalities"]) == (["audio"], ["text"])
    assert ears["transcription"] == {
        "languages": ["en", "de"],
        "translates": True,
        "word_times": True,
        "max_bytes": 512 << 20,
        "max_seconds": 4 * 3600,
    }
    assert all((model["transcription"] is None) == (model is not ears) for model in models)
    assert (await http.get("/v1/models/whisper-1")).json()["id"] == "ears"
