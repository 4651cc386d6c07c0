"""Uploaded voices and reference audio, from the client's side."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fake_service import FakeService, eventually
from live_server import Server, running
from socket_client import client

from cantata.api.settings import ReferenceSettings, ServerSettings
from cantata.contract.data.capabilities import Capabilities
from sounds import data_url, humming, muxed, sound_file, wav

MAX_BYTES = 1 << 20
VOICES = "/v1/audio/voices"
Form = dict[str, str]
GOOD: Form = {"name": "Ada", "consent": "true"}


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    references = ReferenceSettings(max_bytes=MAX_BYTES, voices_dir=tmp_path / "voices")
    return ServerSettings(max_body_bytes=64 << 10, references=references)


@pytest.fixture
async def server(settings: ServerSettings) -> AsyncIterator[Server]:
    """`solo` can follow references, `duo` cannot."""
    service = FakeService()
    service.solo.capabilities = Capabilities(references=True)
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server
        await eventually(lambda: service.solo.counts.open == 0)


async def upload(
    http: httpx.AsyncClient, file: bytes | None = None, media_type: str = "audio/wav", **form: str
) -> httpx.Response:
    sample = ("../../a.wav", wav() if file is None else file, media_type)
    return await http.post(VOICES, data={**GOOD, **form}, files={"audio_sample": sample})


async def uploaded(http: httpx.AsyncClient) -> list[dict[str, Any]]:
    voices = (await http.get(VOICES)).json()["voices"]
    return [voice for voice in voices if voice["kind"] == "uploaded"]


async def test_life_of_an_uploaded_voice(
    server: Server, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    made = await upload(http, ref_text="Hello there.", speaker_description="warm")
    assert made.status_code == 200, made.text
    voice = made.json()
    assert voice["object"] == "audio.voice"
    assert (voice["name"], voice["description"], voice["duration_s"]) == ("Ada", "warm", 2.0)
    (listed,) = await uploaded(http)
    assert listed["id"] == voice["id"]
    assert (listed["model"], listed["created_at"]) == ("solo", voice["created_at"])
    for name in (voice["id"], "ada", {"id": voice["id"]}):
        spoken = await http.post("/v1/audio/speech", json={"input": "hi", "voice": name})
        assert spoken.status_code == 200, spoken.text
        request = server.solo.counts.requests[-1]
        assert request.voice == "clara"
        assert request.reference is not None
        assert request.reference.transcript == "Hello there."
        assert len(request.reference.samples) == 48_000
    gone = await http.delete(f"{VOICES}/{voice['id']}")
    assert gone.json() == {"object": "audio.voice.deleted", "id": voice["id"], "deleted": True}
    assert list((tmp_path / "voices").iterdir()) == []
    assert await uploaded(http) == []
    spoken = await http.post("/v1/audio/speech", json={"input": "hi", "voice": "ada"})
    assert (spoken.status_code, spoken.json()["error"]["code"]) == (400, "voice_not_found")
    again = await http.delete(f"{VOICES}/{voice['id']}")
    assert (again.status_code, again.json()["error"]["code"]) == (404, "voice_not_found")


async def test_running_requests_outlive_their_deleted_voice(
    server: Server, http: httpx.AsyncClient
) -> None:
    await upload(http)
    async with client(server.socket_url) as socket:
        configured = await socket.configure(voice="Ada")
        assert configured["voice"].startswith("voice_")
        assert (await http.delete(f"{VOICES}/Ada")).status_code == 200
        await socket.speak("still here")
        assert server.solo.counts.requests[-1].reference is not None
        await socket.send("session.config", voice="Ada")
        assert (await socket.error())["code"] == "voice_not_found"


async def test_a_model_without_references_rejects_them(
    server: Server, http: httpx.AsyncClient
) -> None:
    await upload(http)
    for options in ({"voice": "Ada"}, {"ref_audio": data_url(wav())}):
        answer = await http.post("/v1/audio/speech", json={"input": "a", "model": "duo", **options})
        error = answer.json()["error"]
        assert answer.status_code == 400
        assert error["param"] == next(iter(options))
        assert "duo cannot speak like a recording" in error["message"]
    async with client(server.socket_url) as socket:
        await socket.send("session.config", model="duo", voice="Ada")
        assert "cannot speak like a recording" in (await socket.error())["message"]
    assert (await http.get(VOICES, params={"model": "duo"})).json()["voices"][-1]["model"] is None


@pytest.mark.parametrize(
    ("file", "rate", "channels"),
    [
        (wav(3, 48_000, 2), 48_000, 2),
        (muxed("webm", "libopus", 3), 48_000, 1),
        (sound_file(humming(3), kind="FLAC"), 24_000, 1),
    ],
)
async def test_reference_audio_in_the_body(
    server: Server, http: httpx.AsyncClient, file: bytes, rate: int, channels: int
) -> None:
    body = {"input": "hi", "voice": "ben", "ref_audio": data_url(file), "ref_text": "aah"}
    assert (await http.post("/v1/audio/speech", json=body)).status_code == 200
    request = server.solo.counts.requests[-1]
    assert request.voice == "ben"
    assert request.reference is not None
    assert request.reference.transcript == "aah"
    assert (request.reference.sample_rate, request.reference.samples.shape[1]) == (rate, channels)
    assert len(request.reference.samples) / rate == pytest.approx(3, abs=0.05)


async def test_voices_are_kept_for_the_next_start(settings: ServerSettings) -> None:
    for start in range(2):
        async with running(FakeService(), settings) as server:
            await server.app.state.context.lifecycle.settled.wait()
            async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
                if start == 0:
                    assert (await upload(http)).status_code == 200
                assert [voice["name"] for voice in await uploaded(http)] == ["Ada"]


async def test_uploads_are_off_without_a_folder() -> None:
    async with running(FakeService(), ServerSettings()) as server:
        await server.app.state.context.lifecycle.settled.wait()
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
            refused = await upload(http)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
            assert (await http.delete(f"{VOICES}/x")).status_code == 403


async def test_decoding_does_not_hold_up_the_loop(server: Server, http: httpx.AsyncClient) -> None:
    """While uploads are decoded, the event loop keeps running."""
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.005)
            turns += 1

    ticking = asyncio.create_task(tick())
    file = sound_file(humming(59, 48_000), 48_000, kind="OGG", subtype="VORBIS")
    assert len(file) < MAX_BYTES
    answers = await asyncio.gather(*(upload(http, file, name=f"v{n}") for n in range(4)))
    ticking.cancel()
    assert {answer.status_code for answer in answers} == {200}
    assert turns > 20


def quiet() -> bytes:
    return wav(3, peak=0.001)


def not_numbers() -> bytes:
    sound = humming(3)
    sound[100] = np.nan
    return sound_file(sound, subtype="FLOAT")


CASES: list[tuple[str, Form, bytes | None, int, str, str | None]] = [
    # What is wrong with the words.
    ("no name", {"name": ""}, None, 400, "invalid_value", "name"),
    ("blank name", {"name": "  "}, None, 400, "invalid_value", "name"),
    ("long name", {"name": "x" * 65}, None, 400, "invalid_value", "name"),
    ("path", {"name": "../ada"}, None, 400, "invalid_value", "name"),
    ("slash", {"name": "a/b"}, None, 400, "invalid_value", "name"),
    ("zero byte", {"name": "a\0b"}, None, 400, "invalid_value", "name"),
    ("line break", {"name": "a\nb"}, None, 400, "invalid_value", "name"),
    ("markup", {"name": "<script>"}, None, 400, "invalid_value", "name"),
    ("direction", {"name": "a\u202eb"}, None, 400, "invalid_value", "name"),
    ("dots", {"name": ".."}, None, 400, "invalid_value", "name"),
    ("like an id", {"name": "voice_12"}, None, 400, "invalid_value", "name"),
    ("stock id", {"name": "clara"}, None, 409, "voice_exists", "name"),
    ("stock name", {"name": "Clara"}, None, 409, "voice_exists", "name"),
    ("stock alias", {"name": "alloy"}, None, 409, "voice_exists", "name"),
    ("taken", {"name": "Taken"}, None, 409, "voice_exists", "name"),
    ("taken, other case", {"name": " TAKEN "}, None, 409, "voice_exists", "name"),
    ("no consent", {"consent": ""}, None, 400, "invalid_value", "consent"),
    ("blank consent", {"consent": " "}, None, 400, "invalid_value", "consent"),
    ("false consent", {"consent": "false"}, None, 400, "invalid_value", "consent"),
    ("consent No", {"consent": "No"}, None, 400, "invalid_value", "consent"),
    ("consent 0", {"consent": "0"}, None, 400, "invalid_value", "consent"),
    ("long consent", {"consent": "x" * 257}, None, 400, "invalid_value", "consent"),
    ("long text", {"ref_text": "x" * 1001}, None, 400, "invalid_value", "ref_text"),
    ("bell in text", {"ref_text": "a\x07"}, None, 400, "invalid_value", "ref_text"),
    (
        "long description",
        {"speaker_description": "x" * 1001},
        None,
        400,
        "invalid_value",
        "speaker_description",
    ),
    # What is wrong with the recording.
    ("empty", {}, b"", 400, "invalid_audio", "audio_sample"),
    ("text", {}, b"hello", 400, "invalid_audio", "audio_sample"),
    ("html", {}, b"<!doctype html>" * 100, 400, "invalid_audio", "audio_sample"),
    ("playlist", {}, b"#EXTM3U\nhttp://127.0.0.1/a.wav\n", 400, "invalid_audio", "audio_sample"),
    ("concat", {}, b"ffconcat version 1.0\nfile /etc/passwd\n", 400, "invalid_audio", None),
    ("zip", {}, b"PK\3\4" + bytes(500), 400, "invalid_audio", "audio_sample"),
    ("picture", {}, b"\x89PNG\r\n\x1a\n" + bytes(500), 400, "invalid_audio", "audio_sample"),
    ("avi", {}, b"RIFF\0\0\0\0AVI " + bytes(500), 400, "invalid_audio", "audio_sample"),
    ("RIFF alone", {}, b"RIFF", 400, "invalid_audio", "audio_sample"),
    ("header alone", {}, wav()[:44], 400, "invalid_audio", "audio_sample"),
    ("half a header", {}, wav()[:30], 400, "invalid_audio", "audio_sample"),
    ("no FLAC", {}, b"fLaC" + bytes(5000), 400, "invalid_audio", "audio_sample"),
    ("no Ogg", {}, b"OggS" + bytes(5000), 400, "invalid_audio", "audio_sample"),
    ("no MP3", {}, b"ID3" + bytes(5000), 400, "invalid_audio", "audio_sample"),
    ("no MP4", {}, b"\0\0\0\x18ftypM4A " + bytes(5000), 400, "invalid_audio", "audio_sample"),
    ("no WebM", {}, b"\x1a\x45\xdf\xa3" + bytes(5000), 400, "invalid_audio", "audio_sample"),
    (
        "cut in the head",
        {},
        muxed("webm", "libopus")[:300],
        400,
        "invalid_audio",
        "audio_sample",
    ),
    ("short", {}, wav(0.4), 400, "invalid_audio", "audio_sample"),
    ("long", {}, sound_file(humming(61), kind="OGG"), 400, "invalid_audio", "audio_sample"),
    ("slow", {}, wav(3, 4_000), 400, "invalid_audio", "audio_sample"),
    ("fast", {}, wav(1.2, 200_000), 400, "invalid_audio", "audio_sample"),
    ("nine channels", {}, wav(2, 8_000, 9), 400, "invalid_audio", "audio_sample"),
    ("silence", {}, wav(3, peak=0), 400, "invalid_audio", "audio_sample"),
    ("quiet", {}, quiet(), 400, "invalid_audio", "audio_sample"),
    (
        "a click",
        {},
        sound_file(np.eye(48_000, 1, dtype=np.float32)),
        400,
        "invalid_audio",
        "audio_sample",
    ),
    ("not numbers", {}, not_numbers(), 400, "invalid_audio", "audio_sample"),
    ("odd codec", {}, sound_file(humming(2), subtype="IMA_ADPCM"), 400, "invalid_audio", None),
    (
        "text of more than is used",
        {"ref_text": "all of it"},
        sound_file(humming(16), kind="OGG"),
        400,
        "invalid_audio",
        "audio_sample",
    ),
    ("over the file's limit", {}, bytes(MAX_BYTES + 1), 413, "body_too_large", "audio_sample"),
    ("over the body's limit", {}, bytes(MAX_BYTES + (80 << 10)), 413, "body_too_large", None),
]


@pytest.mark.parametrize(
    ("form", "file", "status", "code", "param"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
async def test_invalid_uploads_are_rejected(
    server: Server,
    http: httpx.AsyncClient,
    tmp_path: Path,
    form: Form,
    file: bytes | None,
    status: int,
    code: str,
    param: str | None,
) -> None:
    if "taken" in form.get("name", "").lower():
        assert (await upload(http, name="Taken")).status_code == 200
    before = await uploaded(http)
    answer = await upload(http, file, **form)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code), error
    assert error["param"] == param or param is None
    assert error["type"] == "invalid_request_error"
    assert str(tmp_path) not in answer.text
    assert await uploaded(http) == before


@pytest.mark.parametrize("missing", ["name", "consent", "audio_sample"])
async def test_every_needed_field_is_asked_for(http: httpx.AsyncClient, missing: str) -> None:
    form = {key: value for key, value in GOOD.items() if key != missing}
    files = {"audio_sample": ("a.wav", wav())} if missing != "audio_sample" else {"x": b""}
    answer = await http.post(VOICES, data=form, files=files)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, missing)
    assert "required" in error["message"]


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b"--x\r\nbroken", "multipart/form-data; boundary=x"),
        (b"", "multipart/form-data"),
        (b'{"name": "Ada"}', "application/json"),
        (b"name=Ada&consent=true&audio_sample=x", "application/x-www-form-urlencoded"),
    ],
)
async def test_bodies_that_are_no_form(
    http: httpx.AsyncClient, content: bytes, content_type: str
) -> None:
    answer = await http.post(VOICES, content=content, headers={"content-type": content_type})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_value"


async def test_an_endless_upload_is_rejected_unread(http: httpx.AsyncClient) -> None:
    sent = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent
        yield b'--x\r\ncontent-disposition: form-data; name="audio_sample"; filename="a"\r\n\r\n'
        while sent < 256 << 20:
            sent += 64 << 10
            yield bytes(64 << 10)

    kind = {"content-type": "multipart/form-data; boundary=x"}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # This client reads the response only after sending everything.
    with pytest.raises(httpx.TransportError):
        await http.post(VOICES, content=pieces(), headers=kind)
    assert sent < 64 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10


REFERENCES: list[tuple[str, dict[str, Any], int, str, str]] = [
    ("empty", {"ref_audio": ""}, 400, "invalid_audio", "must be a URL"),
    ("bare base64", {"ref_audio": "UklGRg=="}, 400, "invalid_audio", "must be a URL"),
    ("path", {"ref_audio": "/etc/passwd"}, 400, "invalid_audio", "must be a URL"),
    ("file", {"ref_audio": "file:///etc/passwd"}, 400, "invalid_audio", "must be a URL"),
    ("url", {"ref_audio": "https://example.org/a"}, 400, "invalid_audio", "does not fetch URLs"),
    (
        "no comma",
        {"ref_audio": "data:audio/wav;base64"},
        400,
        "invalid_audio",
        "must begin with data:",
    ),
    (
        "not base64",
        {"ref_audio": "data:audio/wav,abc"},
        400,
        "invalid_audio",
        "must begin with data:",
    ),
    ("text", {"ref_audio": "data:text/html;base64,AAAA"}, 400, "invalid_audio", "media type"),
    ("bad", {"ref_audio": "data:audio/wav;base64,*"}, 400, "invalid_audio", "not valid base64"),
    ("odd", {"ref_audio": "data:audio/wav;base64,AAAAA"}, 400, "invalid_audio", "cut off"),
    ("accent", {"ref_audio": "data:audio/wav;base64,\u00e4"}, 400, "invalid_audio", "base64"),
    (
        "nothing",
        {"ref_audio": "data:audio/wav;base64,"},
        400,
        "invalid_audio",
        "not a readable sound file",
    ),
    ("short", {"ref_audio": data_url(wav(0.4))}, 400, "invalid_audio", "at least 0.5 s"),
    ("quiet", {"ref_audio": data_url(quiet())}, 400, "invalid_audio", "too quiet"),
    ("big", {"ref_audio": data_url(bytes(MAX_BYTES + 9))}, 413, "body_too_large", "larger than"),
    ("huge", {"ref_audio": "x" * (2 << 20)}, 413, "body_too_large", "larger than"),
    ("number", {"ref_audio": 5}, 400, "invalid_value", "valid string"),
    ("text alone", {"ref_text": "hello"}, 400, "invalid_value", "send both"),
    (
        "two speakers",
        {"voice": "Ada", "ref_audio": data_url(wav())},
        400,
        "invalid_value",
        "not both",
    ),
]


@pytest.mark.parametrize(
    ("body", "status", "code", "says"),
    [case[1:] for case in REFERENCES],
    ids=[case[0] for case in REFERENCES],
)
async def test_invalid_reference_audio_is_rejected(
    server: Server, http: httpx.AsyncClient, body: dict[str, Any], status: int, code: str, says: str
) -> None:
    if "voice" in body:
        await upload(http)
    answer = await http.post("/v1/audio/speech", json={"input": "hi", **body})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code), error
    assert says in error["message"]
    assert len(answer.content) < 1000
    assert server.solo.counts.started == 0
