"""Batches of every route that may have them: each line is answered as its route answers, with what
live requests leave."""

from __future__ import annotations

import base64
import logging
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from batch_client import FILES, SPEECH, begin, line, read, until_ended
from fake_service import eventually
from live_server import Server

from cantata.api.settings import JobSettings, ServerSettings
from cantata.media.request_media import MediaLimits
from images_and_videos import image_file, quarters

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
TRANSCRIBE, TRANSLATE = "/v1/audio/transcriptions", "/v1/audio/translations"
DRAW, EDIT = "/v1/images/generations", "/v1/images/edits"
MAX_PICTURES = 1 << 20
"""Bytes of a request's."""
RECORDING = (Path(__file__).parents[4] / "docs" / "voice" / "clara.mp3").read_bytes()


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return ServerSettings(
        jobs=JobSettings(tmp_path / "jobs"), media=MediaLimits(max_bytes=MAX_PICTURES)
    )


async def answer(
    server: Server, http: httpx.AsyncClient, endpoint: str, *bodies: dict[str, Any]
) -> list[dict[str, Any]]:
    """The responses to requests of one route, in their order."""
    lines = [line(str(number), endpoint, **body) for number, body in enumerate(bodies)]
    batch = await begin(http, *lines, endpoint=endpoint)
    done = await until_ended(server, http, batch["id"])
    assert done["status"] == "completed", done
    found = dict[str, dict[str, Any]]()
    for file in ("output_file_id", "error_file_id"):
        if done[file] is not None:
            found |= await read(http, done[file])
    return [found[str(number)]["response"] for number in range(len(bodies))]


async def upload_recording(http: httpx.AsyncClient, data: bytes = RECORDING) -> str:
    sent = await http.post(FILES, data={"purpose": "user_data"}, files={"file": ("a.mp3", data)})
    return str(sent.json()["id"])


async def test_conversations(server: Server, http: httpx.AsyncClient) -> None:
    asked = {"messages": [{"role": "user", "content": "Say\nthis."}]}
    spoken = {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}
    plain, sounding, wrong, streamed = await answer(
        server,
        http,
        CHAT,
        {"model": "reader", **asked},
        {"model": "omni", **asked, **spoken},
        {"model": "nobody", **asked},
        {"model": "reader", **asked, "stream": True},
    )
    assert plain["status_code"] == 200
    assert plain["body"]["choices"][0]["message"]["content"] == "Say\nthis."
    assert plain["body"]["usage"]["completion_tokens"] > 0
    sound = sounding["body"]["choices"][0]["message"]["audio"]
    assert base64.b64decode(sound["data"])[:4] == b"RIFF"
    assert (wrong["status_code"], wrong["body"]["error"]["code"]) == (404, "model_not_found")
    assert (streamed["status_code"], streamed["body"]["error"]["param"]) == (400, "stream")
    requests = [*server.service.reader.counts.requests, *server.service.omni.counts.requests]
    assert [one.batch for one in requests] == [True, True]


async def test_an_answer_that_another_model_speaks(server: Server, http: httpx.AsyncClient) -> None:
    server.service.reader.spoken_by = "solo"
    (spoken,) = await answer(
        server,
        http,
        CHAT,
        {
            "model": "reader",
            "messages": [{"role": "user", "content": "Speak."}],
            "modalities": ["text", "audio"],
            "audio": {"voice": "ben"},
        },
    )
    assert spoken["body"]["choices"][0]["message"]["audio"]["transcript"] == "Speak."
    assert [one.batch for one in server.service.reader.counts.requests] == [True]
    said = [(one.batch, one.voice) for one in server.solo.counts.requests]
    assert said == [(True, "ben")] * len(said) != []


async def test_responses_are_kept_only_if_that_is_asked(
    server: Server, http: httpx.AsyncClient
) -> None:
    body = {"model": "reader", "input": "Say this."}
    plain, kept = await answer(server, http, RESPONSES, body, {**body, "store": True})
    assert [plain["body"]["store"], kept["body"]["store"]] == [False, True]
    assert (await http.get(f"{RESPONSES}/{plain['body']['id']}")).status_code == 404
    assert (await http.get(f"{RESPONSES}/{kept['body']['id']}")).json() == kept["body"]


async def test_recordings_are_kept_files_or_base64(server: Server, http: httpx.AsyncClient) -> None:
    file = await upload_recording(http)
    in_line = {"input_audio": {"data": base64.b64encode(RECORDING).decode()}}
    words = {"timestamp_granularities": ["word"], "response_format": "verbose_json"}
    bodies: list[dict[str, Any]] = [
        {"file": file},
        in_line,
        {"file": file, "response_format": "srt"},
        {"file": file, "language": "de", "hotwords": ["a", "b"], **words},
        {"file": "file-none"},
        {"file": file, "language": "xx", 'a"\r\n': "ignored"},
        {"file": await upload_recording(http, b"no sound")},
        {},
    ]
    named, sent, captions, verbose, missing, language, silent, empty = await answer(
        server, http, TRANSCRIBE, *bodies
    )
    form = await http.post(TRANSCRIBE, files={"file": ("a.mp3", RECORDING)})
    assert named["body"] == sent["body"] == form.json()
    assert captions["body"].startswith("1\n00:00:00")
    assert verbose["body"]["words"]
    assert verbose["body"]["language"] == "de"
    assert server.service.ears.counts.requests[-1].batch
    assert (missing["status_code"], missing["body"]["error"]["code"]) == (404, "file_not_found")
    assert missing["body"]["error"]["param"] == "file"
    assert language["body"]["error"]["param"] == "language"
    assert silent["body"]["error"]["code"] == "invalid_audio"
    assert (empty["status_code"], empty["body"]["error"]["param"]) == (400, "input_audio")


async def test_translations(server: Server, http: httpx.AsyncClient) -> None:
    server.service.ears.translates = True
    (translated,) = await answer(server, http, TRANSLATE, {"file": await upload_recording(http)})
    assert translated["status_code"] == 200
    assert server.service.ears.counts.requests[-1].translate


async def test_pictures(server: Server, http: httpx.AsyncClient) -> None:
    (drawn,) = await answer(
        server, http, DRAW, {"prompt": "a red apple", "seed": 3, "size": "64x48"}
    )
    live = await http.post(DRAW, json={"prompt": "a red apple", "seed": 3, "size": "64x48"})
    assert drawn["body"]["data"] == live.json()["data"]
    assert [one.batch for one in server.service.painter.counts.requests] == [True, False]


async def test_edits_take_kept_pictures_and_those_in_the_line(
    server: Server, http: httpx.AsyncClient
) -> None:
    picture = quarters(40, 60)
    file = image_file(picture)
    kept = {"file_id": await upload_recording(http, file)}
    sent = {"b64_json": base64.b64encode(file).decode()}
    asked = {"prompt": "a red apple", "seed": 7}
    huge = {"file_id": await upload_recording(http, bytes(MAX_PICTURES + 1))}
    one, both, missing, large, nothing = await answer(
        server,
        http,
        EDIT,
        {**asked, "image": kept},
        {**asked, "images": [kept, sent]},
        {**asked, "image": {"file_id": "file-none"}},
        {**asked, "images": [huge]},
        asked,
    )
    requests = server.service.editor.counts.requests
    shown_to = sorted((len(request.references), request.batch) for request in requests)
    assert shown_to == [(1, True), (2, True)]
    for request in requests:
        for shown in request.references:
            np.testing.assert_array_equal(shown, picture)
    live = await http.post(EDIT, json={**asked, "image": sent})
    assert one["body"]["data"] == live.json()["data"]
    assert both["body"]["usage"]["input_tokens_details"]["image_tokens"] == 20
    refused = [(one["status_code"], one["body"]["error"]["param"]) for one in (missing, large)]
    assert refused == [(404, "file_id"), (413, "file_id")]
    assert (nothing["status_code"], nothing["body"]["error"]["param"]) == (400, "image")


@pytest.mark.parametrize(
    ("endpoint", "body", "input_tokens"),
    [
        (SPEECH, {"input": "hello", "response_format": "wav"}, 5),
        (CHAT, {"model": "reader", "messages": [{"role": "user", "content": "Say this."}]}, None),
        (RESPONSES, {"model": "reader", "input": "Say this."}, None),
        (DRAW, {"prompt": "a red apple"}, None),
    ],
)
async def test_a_batch_adds_up_what_its_lines_took(
    server: Server,
    http: httpx.AsyncClient,
    endpoint: str,
    body: dict[str, Any],
    input_tokens: int | None,
) -> None:
    lines = [line(str(number), endpoint, **body) for number in range(2)]
    wrong = line("2", endpoint, **{**body, "model": "nobody"})
    batch = await begin(http, *lines, wrong, endpoint=endpoint)
    assert batch["usage"]["total_tokens"] == 0
    done = await until_ended(server, http, batch["id"])
    answers = (await read(http, done["output_file_id"])).values()
    told = [one["response"]["body"]["usage"] for one in answers]
    used = done["usage"]
    assert len(told) == 2
    assert used["total_tokens"] == sum(one["total_tokens"] for one in told)
    assert used["input_tokens"] + used["output_tokens"] == used["total_tokens"]
    assert used["input_tokens"] > 0
    assert used["output_tokens"] > 0
    if input_tokens is not None:
        assert [one["input_tokens"] for one in told] == [input_tokens] * 2


async def test_a_line_waits_for_room_as_long_as_it_takes(
    server: Server,
    http: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "cantata.jobs.answering")
    monkeypatch.setattr("cantata.jobs.answering._FIRST_WAIT_S", 0.001)
    monkeypatch.setattr("cantata.jobs.answering._MAX_WAIT_S", 0.001)
    monkeypatch.setattr("cantata.jobs.answering._ATTEMPTS", 1)
    painter = server.service.painter
    painter.behaviour.slots = 0
    batch = await begin(http, line("a", DRAW, prompt="a red apple"), endpoint=DRAW)
    await eventually(lambda: len(caplog.records) > 5)
    painter.behaviour.slots = 1
    done = await until_ended(server, http, batch["id"])
    assert done["request_counts"] == {"total": 1, "completed": 1, "failed": 0}
