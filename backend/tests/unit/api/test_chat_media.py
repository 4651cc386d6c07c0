"""POST /v1/chat/completions with sound, pictures and videos in its messages."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import httpx
import numpy as np
import pytest
from fake_chat import FakeChatModel
from fake_service import eventually
from live_server import Server
from test_chat import CHAT

from cantata.api.chat.conversation import read_messages
from cantata.api.chat.messages import UserMessage
from cantata.api.chat.transcripts import Transcripts
from cantata.api.settings import ServerSettings
from cantata.contract.data.chat import AudioPart, ImagePart, MessagePart, TextPart, VideoPart
from cantata.contract.data.errors import InvalidRequest
from cantata.media.fetching import FetchLimits
from cantata.media.kinds import MediaKind
from cantata.media.loading import MediaLoader
from cantata.media.request_media import MediaLimits, MediaReader
from images_and_videos import image_file, quarters, video_file
from sounds import humming, muxed, sound_file, wav

LIMITS = MediaLimits(
    max_bytes=1 << 20, max_audio_s=20, max_decoded_bytes=4 << 20, max_held_bytes=6 << 20
)


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings(media=LIMITS)


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def sound(data: bytes, name: str = "wav") -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": encoded(data), "format": name}}


def at(kind: str, media_type: str, data: bytes, **options: Any) -> dict[str, Any]:
    url = f"data:{media_type};base64,{encoded(data)}"
    return {"type": kind, kind: {"url": url, **options}}


def asking(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [*parts]}]}


async def taken(
    server: Server, http: httpx.AsyncClient, *parts: dict[str, Any]
) -> list[MessagePart]:
    """What the model gets."""
    response = await http.post(CHAT, json=asking(*parts))
    assert response.status_code == 200, response.text
    (message,) = server.service.omni.counts.requests[-1].messages
    return list(message.parts)


async def refused(http: httpx.AsyncClient, *parts: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    response = await http.post(CHAT, json=asking(*parts))
    return response.status_code, response.json()["error"]


def held(server: Server) -> int:
    reader = server.app.state.context.media
    assert isinstance(reader, MediaReader)
    return reader.held_bytes


async def test_parts_arrive_decoded_and_in_their_order(
    server: Server, http: httpx.AsyncClient
) -> None:
    first, heard, seen, film, more = await taken(
        server,
        http,
        {"type": "text", "text": "What is this?"},
        sound(wav(0.5, 44_100, channels=2)),
        at("image_url", "image/png", image_file(quarters()), detail="high"),
        at("video_url", "video/mp4", video_file(3)),
        at("audio_url", "audio/webm", muxed("webm", "libopus", 0.5)),
    )
    assert first == TextPart("What is this?")
    assert isinstance(heard, AudioPart)
    assert (heard.sample_rate, heard.samples.shape) == (44_100, (22_050, 2))
    np.testing.assert_allclose(heard.samples, humming(0.5, 44_100, 2), atol=1e-4)
    assert isinstance(seen, ImagePart)
    np.testing.assert_array_equal(seen.pixels, quarters())
    assert isinstance(film, VideoPart)
    assert film.frames.shape == (6, 48, 64, 3)
    assert isinstance(more, AudioPart)
    assert more.sample_rate == 48_000
    assert held(server) == 0


HEARD = {"mm_processor_kwargs": {"use_audio_in_video": True}}


@pytest.mark.parametrize("container", ["mp4", "mov", "matroska"])
async def test_the_sound_of_a_video_arrives_if_it_is_asked_for(
    server: Server, http: httpx.AsyncClient, container: str
) -> None:
    hum = humming(2.5, 48_000)
    both = video_file(3, container=container, sound=("aac", hum))
    parts = [
        at("video_url", "video/mp4", both),
        at("video_url", "video/mp4", video_file(3)),
    ]
    for options in (HEARD, {}):
        response = await http.post(CHAT, json={**asking(*parts), **options})
        assert response.status_code == 200, response.text
        (message,) = server.service.omni.counts.requests[-1].messages
        film, silent = message.parts
        assert isinstance(film, VideoPart)
        assert isinstance(silent, VideoPart)
        assert film.frames.shape == silent.frames.shape
        assert silent.sound is None
        if not options:
            assert film.sound is None
            continue
        assert film.sound is not None
        assert film.sound.sample_rate == 48_000
        assert len(film.sound.samples) / 48_000 == pytest.approx(2.5, abs=0.1)
        # AAC's decoder begins a little early, so the spectra are compared.
        spectra = [abs(np.fft.rfft(s[:100_000, 0])) for s in (film.sound.samples, hum)]
        assert np.corrcoef(*spectra)[0, 1] > 0.9  # type: ignore[call-overload]
    assert held(server) == 0


async def test_what_hears_no_videos_says_so(http: httpx.AsyncClient) -> None:
    body = {**asking({"type": "text", "text": "?"}), **HEARD, "model": "reader"}
    response = await http.post(CHAT, json=body)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "mm_processor_kwargs.use_audio_in_video"


async def test_sound_is_what_its_file_says_it_is(server: Server, http: httpx.AsyncClient) -> None:
    mp3 = sound_file(humming(1), kind="MP3")
    for name in ("mp3", "wav"):
        (part,) = await taken(server, http, sound(mp3, name))
        assert isinstance(part, AudioPart)
        assert len(part.samples) / part.sample_rate == pytest.approx(1, abs=0.07)


async def test_low_detail_is_a_small_picture(server: Server, http: httpx.AsyncClient) -> None:
    file = image_file(quarters(800, 1200))
    small, whole = await taken(
        server,
        http,
        at("image_url", "image/png", file, detail="low"),
        at("image_url", "image/png", file),
    )
    assert isinstance(small, ImagePart)
    assert isinstance(whole, ImagePart)
    assert small.pixels.shape[0] * small.pixels.shape[1] == pytest.approx(512 * 512, rel=0.01)
    assert whole.pixels.shape == (800, 1200, 3)


SILENT = sound_file(np.zeros((0, 1), np.float32))
ONE_BYTE_OVER = wav(22, 24_000)


@pytest.mark.parametrize(
    ("parts", "status", "code", "param", "says"),
    [
        ([sound(SILENT)], 400, "invalid_audio", "messages[0].content[0].input_audio", "0 s long"),
        (
            [sound(wav(21, 8_000))],
            400,
            "invalid_audio",
            "messages[0].content[0].input_audio",
            "longer than 20 s",
        ),
        (
            [sound(wav(11, 8_000))] * 2,
            400,
            "invalid_audio",
            "messages[0].content[1].input_audio",
            "up to 20 s are accepted in all messages together",
        ),
        (
            [sound(ONE_BYTE_OVER)],
            413,
            "body_too_large",
            "messages[0].content[0].input_audio",
            "is larger than 1048576 bytes",
        ),
        (
            [sound(wav(12))] * 2,
            413,
            "body_too_large",
            "messages[0].content[1].input_audio",
            "is larger than",
        ),
        (
            [at("image_url", "image/png", image_file(quarters(800, 1200)))] * 2,
            413,
            "body_too_large",
            "messages[0].content[1].image_url",
            "more than 4 MiB when decoded",
        ),
        (
            [at("video_url", "video/mp4", video_file(20 * 60, rate=1, size=(16, 16)))],
            400,
            "invalid_video",
            "messages[0].content[0].video_url",
            "1200 s long; up to 600 s",
        ),
        (
            [at("image_url", "image/jpeg", b"\xff\xd8\xff\xe0 no picture")],
            400,
            "invalid_image",
            "messages[0].content[0].image_url",
            "PNG, JPEG, WebP, GIF",
        ),
    ],
)
async def test_files_that_cannot_be_used(
    server: Server,
    http: httpx.AsyncClient,
    parts: list[dict[str, Any]],
    status: int,
    code: str,
    param: str,
    says: str,
) -> None:
    found, error = await refused(http, *parts)
    assert (found, error["code"], error["param"]) == (status, code, param)
    assert says in error["message"]
    assert held(server) == 0
    assert server.service.omni.counts.requests == []


async def test_a_body_over_the_limit_is_413(http: httpx.AsyncClient) -> None:
    status, error = await refused(http, sound(bytes(2 << 20)))
    assert (status, error["code"]) == (413, "body_too_large")


async def test_all_requests_together_hold_a_bounded_amount(
    server: Server, http: httpx.AsyncClient
) -> None:
    model: FakeChatModel = server.service.omni
    model.behaviour.text = "two pieces"
    model.behaviour.may_continue = asyncio.Event()
    picture = at("image_url", "image/png", image_file(quarters(1000, 1200)))
    first = asyncio.create_task(http.post(CHAT, json=asking(picture)))
    await eventually(lambda: model.counts.events == 1)
    assert held(server) == 1000 * 1200 * 3
    status, error = await refused(http, picture)
    assert (status, error["code"]) == (429, "rate_limit_exceeded")
    model.behaviour.may_continue.set()
    assert (await first).status_code == 200
    assert held(server) == 0
    assert len(await taken(server, http, picture)) == 1


async def test_files_that_take_too_long() -> None:
    class Hanging(MediaLoader):
        async def load(self, url: str, kind: MediaKind, param: str, max_bytes: int) -> bytes:
            await asyncio.Event().wait()
            return b""

    reader = MediaReader(Hanging(None), replace(LIMITS, work_s=0.05))
    message = UserMessage.model_validate(
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/"}}]}
    )
    with reader.request() as media, pytest.raises(InvalidRequest, match=r"longer than 0.05 s"):
        await read_messages([message], media, Transcripts())


class Web:
    """A server of files."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        body = self.files[path]
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    def url(self, path: str, body: bytes) -> str:
        self.files[path] = body
        return f"http://127.0.0.1:{self.port}{path}"


class TestAddresses:
    """With fetching on."""

    @pytest.fixture
    async def web(self) -> AsyncIterator[Web]:
        web = Web()
        async with await asyncio.start_server(web.serve, "127.0.0.1", 0) as server:
            web.port = server.sockets[0].getsockname()[1]
            yield web

    @pytest.fixture
    def settings(self, web: Web) -> ServerSettings:
        reachable = (ip_network("127.0.0.1/32"),)
        fetch = FetchLimits(ports=frozenset({web.port}), allowed_networks=reachable)
        return ServerSettings(media=LIMITS, fetch=fetch)

    async def test_files_are_fetched(
        self, server: Server, http: httpx.AsyncClient, web: Web
    ) -> None:
        parts = await taken(
            server,
            http,
            {"type": "image_url", "image_url": {"url": web.url("/i", image_file(quarters()))}},
            {"type": "audio_url", "audio_url": {"url": web.url("/a", wav(0.5))}},
            {"type": "video_url", "video_url": {"url": web.url("/v", video_file(3))}},
        )
        assert [type(part) for part in parts] == [ImagePart, AudioPart, VideoPart]

    async def test_fetched_files_are_limited_too(self, http: httpx.AsyncClient, web: Web) -> None:
        large = {"type": "audio_url", "audio_url": {"url": web.url("/a", bytes((1 << 20) + 1))}}
        status, error = await refused(http, large)
        assert (status, error["code"]) == (413, "body_too_large")
        assert error["param"] == "messages[0].content[0].audio_url"
        inside = {"type": "image_url", "image_url": {"url": f"http://[::1]:{web.port}/i"}}
        status, error = await refused(http, inside)
        assert (status, error["code"]) == (400, "invalid_image")
        assert "not public" in error["message"]
