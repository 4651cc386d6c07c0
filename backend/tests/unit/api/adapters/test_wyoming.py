"""Wyoming over TCP, with the client of its own package."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fake_service import FakeService, eventually, expected_pcm
from live_server import until_still
from wyoming.audio import AudioChunk
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Describe, Info
from wyoming.ping import Ping, Pong
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeVoice,
)

from cantata.api.app import create_app
from cantata.api.server.listening import listen
from cantata.api.settings import ConnectionSettings, ServerSettings
from cantata.audio.pcm import encode_s16le
from cantata.contract.data.errors import RequestFailed


@pytest.fixture
async def service() -> FakeService:
    return FakeService()


@asynccontextmanager
async def serving(service: FakeService, **limits: float) -> AsyncIterator[int]:
    listener = listen("127.0.0.1", 0)
    settings = ServerSettings(connections=ConnectionSettings(**limits))  # type: ignore[arg-type]
    app = create_app(service, settings, wyoming=listener)
    port: int = listener.getsockname()[1]
    async with app.router.lifespan_context(app):
        await eventually(lambda: service.ready)
        yield port


@pytest.fixture
async def port(service: FakeService) -> AsyncIterator[int]:
    async with serving(service) as port:
        yield port
    assert service.solo.counts.open == 0


@pytest.fixture
async def client(port: int) -> AsyncIterator[AsyncTcpClient]:
    async with AsyncTcpClient("127.0.0.1", port) as client:
        yield client


async def next_event(client: AsyncTcpClient) -> Event | None:
    async with asyncio.timeout(30):
        return await client.read_event()


async def heard(client: AsyncTcpClient, last: str) -> tuple[list[str], bytes]:
    """Kinds of events up to one of a kind, runs of chunks as one; and the sound."""
    kinds: list[str] = []
    sound = b""
    while last not in kinds:
        event = await next_event(client)
        assert event is not None
        if AudioChunk.is_type(event.type):
            chunk = AudioChunk.from_event(event)
            assert (chunk.rate, chunk.width, chunk.channels) == (24_000, 2, 1)
            sound += chunk.audio
        if kinds[-1:] != [event.type]:
            kinds.append(event.type)
    return kinds, sound


def spoken(service: FakeService, *texts: str) -> bytes:
    return b"".join(encode_s16le(expected_pcm(text, service.solo.behaviour)) for text in texts)


async def test_voices_are_described(client: AsyncTcpClient) -> None:
    await client.write_event(Describe().event())
    event = await next_event(client)
    assert event is not None
    (program,) = Info.from_event(event).tts
    assert program.supports_synthesize_streaming
    assert [voice.name for voice in program.voices][:2] == ["clara", "ben"]
    assert all(voice.languages == ["en"] and voice.installed for voice in program.voices)
    await client.write_event(Ping(text="still there?").event())
    event = await next_event(client)
    assert event is not None
    assert Pong.from_event(event).text == "still there?"


async def test_one_text(client: AsyncTcpClient, service: FakeService) -> None:
    order = Synthesize(text="Hello there. How are you", voice=SynthesizeVoice(name="ben"))
    await client.write_event(order.event())
    kinds, sound = await heard(client, "audio-stop")
    assert kinds == ["audio-start", "audio-chunk", "audio-stop"]
    assert sound == spoken(service, "Hello there.", "How are you")
    assert {request.voice for request in service.solo.counts.requests} == {"ben"}
    await client.write_event(Synthesize(text="Again", voice=SynthesizeVoice(language="en")).event())
    _, sound = await heard(client, "audio-stop")
    assert sound == spoken(service, "Again")


async def test_text_is_spoken_while_it_is_written_and_once(
    client: AsyncTcpClient, service: FakeService
) -> None:
    """Home Assistant sends the whole text too, for servers that do not stream."""
    await client.write_event(SynthesizeStart(voice=SynthesizeVoice(name="clara")).event())
    for piece in ("Hello ", "there. How"):
        await client.write_event(SynthesizeChunk(text=piece).event())
    await eventually(lambda: service.solo.counts.finished == 1)
    await client.write_event(SynthesizeChunk(text=" are you").event())
    await client.write_event(Synthesize(text="Hello there. How are you").event())
    await client.write_event(SynthesizeStop().event())
    kinds, sound = await heard(client, "synthesize-stopped")
    assert kinds == ["audio-start", "audio-chunk", "audio-stop", "synthesize-stopped"]
    assert sound == spoken(service, "Hello there.", "How are you")
    await client.write_event(Synthesize(text="Later").event())
    kinds, sound = await heard(client, "audio-stop")
    assert sound == spoken(service, "Later")


async def test_a_text_without_words_still_ends(
    client: AsyncTcpClient, service: FakeService
) -> None:
    for text in ("", "...", "\U0001f600"):
        await client.write_event(Synthesize(text=text).event())
        assert await heard(client, "audio-stop") == (["audio-start", "audio-stop"], b"")
    await client.write_event(SynthesizeStart().event())
    await client.write_event(SynthesizeStop().event())
    kinds = ["audio-start", "audio-stop", "synthesize-stopped"]
    assert await heard(client, "synthesize-stopped") == (kinds, b"")
    await client.write_event(Synthesize(text="And now words").event())
    kinds, sound = await heard(client, "audio-stop")
    assert kinds == ["audio-start", "audio-chunk", "audio-stop"]
    assert sound == spoken(service, "And now words")


async def test_a_disconnect_stops_at_once(port: int, service: FakeService) -> None:
    how = service.solo.behaviour
    how.chunks, how.interval_s, how.abort_s = 1000, 0.01, 0.05
    async with AsyncTcpClient("127.0.0.1", port) as client:
        await client.write_event(Synthesize(text="A long story. And another.").event())
        await eventually(lambda: service.solo.counts.chunks > 5)
    await eventually(lambda: service.solo.counts.open == 0)
    counts = service.solo.counts
    assert (counts.started, counts.aborted, counts.abort_interrupted) == (1, 1, 0)


async def test_a_client_that_reads_nothing_holds_back_its_own_sound(
    port: int, service: FakeService
) -> None:
    service.solo.behaviour.chunks = 40_000
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(b'{"type": "synthesize", "data": {"text": "hello"}}\n')
    await until_still(lambda: service.solo.counts.chunks)
    assert 0 < service.solo.counts.chunks < 40_000
    writer.transport.abort()
    await eventually(lambda: service.solo.counts.open == 0)
    assert reader is not None


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (Synthesize(text="hi", voice=SynthesizeVoice(name="nobody")), "no voice 'nobody'"),
        (Synthesize(text="no room"), "all slots are taken"),
        (Synthesize(text="x" * 300), "at most 200"),
    ],
)
async def test_an_error_is_reported_and_ends_the_connection(
    client: AsyncTcpClient, service: FakeService, order: Synthesize, says: str
) -> None:
    if order.text == "no room":
        service.solo.behaviour.capacity = 0
    await client.write_event(order.event())
    event = await next_event(client)
    assert event is not None
    assert says in Error.from_event(event).text
    assert await next_event(client) is None


async def test_a_failure_is_reported_without_a_stop(
    client: AsyncTcpClient, service: FakeService
) -> None:
    service.solo.behaviour.fail_after = 2
    service.solo.behaviour.error = RequestFailed("it broke")
    await client.write_event(Synthesize(text="hello").event())
    kinds, _ = await heard(client, "error")
    assert kinds == ["audio-start", "audio-chunk", "error"]
    assert await next_event(client) is None


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"[]\n",
        b'{"type": "synthesize", "data_length": 99999999}\n',
        b'{"type": "synthesize", "data": {}}\n',
        b'{"type": "synthesize", "data": {"text": 1}}\n',
        b'{"type": "synthesize", "data": {"text": "a\\ud800"}}\n',
        b'{"type": "ping", "data": {"text": "\\ud800"}}\n',
        b"[" * 60_000 + b"\n",
        b"x" * (1 << 20),
    ],
)
async def test_what_is_no_event_ends_the_connection(
    port: int, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        async with asyncio.timeout(30):
            await reader.read()
            assert reader.at_eof()
    except ConnectionResetError:
        pass
    finally:
        writer.close()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_what_is_half_sent_ends_in_time_and_a_silent_client_does_not(
    service: FakeService,
) -> None:
    async with (
        serving(service, head_timeout_s=0.2) as port,
        AsyncTcpClient("127.0.0.1", port) as silent,
    ):
        await silent.write_event(Ping("here").event())
        assert await next_event(silent)
        for half in (b"", b'{"type": "pi', b'{"type": "ping", "data_length": 9}\n{'):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(half)
            async with asyncio.timeout(60):
                assert b"protocol_violation" in await reader.read()
            writer.close()
        await silent.write_event(Synthesize(text="Still here.").event())
        _, sound = await heard(silent, "audio-stop")
        assert sound == spoken(service, "Still here.")


async def test_a_voice_that_is_null_is_the_default(
    client: AsyncTcpClient, service: FakeService
) -> None:
    await client.write_event(Event("synthesize", {"text": "hello", "voice": None}))
    _, sound = await heard(client, "audio-stop")
    assert sound == spoken(service, "hello")


async def test_a_shutdown_ends_connections() -> None:
    service = FakeService()
    how = service.solo.behaviour
    how.chunks, how.interval_s = 1000, 0.01
    async with serving(service) as port:
        client = AsyncTcpClient("127.0.0.1", port)
        await client.connect()
        await client.write_event(Synthesize(text="A long story.").event())
        await eventually(lambda: service.solo.counts.chunks > 5)
    assert service.solo.counts.open == 0
    await client.disconnect()


async def test_a_text_is_finished_while_the_server_stops(service: FakeService) -> None:
    listener = listen("127.0.0.1", 0)
    app = create_app(service, ServerSettings(), wyoming=listener)
    port: int = listener.getsockname()[1]
    async with (
        app.router.lifespan_context(app),
        AsyncTcpClient("127.0.0.1", port) as idle,
        AsyncTcpClient("127.0.0.1", port) as writing,
    ):
        await eventually(lambda: service.ready)
        await idle.write_event(Ping("here").event())
        assert await next_event(idle)
        await writing.write_event(SynthesizeStart().event())
        await writing.write_event(SynthesizeChunk("The first half. ").event())
        await eventually(lambda: service.solo.counts.started == 1)
        app.state.context.drain.announce()
        refused = await next_event(idle)
        assert refused
        assert Error.from_event(refused).code == "going_away"
        assert await next_event(idle) is None
        await writing.write_event(SynthesizeChunk("The second half.").event())
        await writing.write_event(SynthesizeStop().event())
        kinds, sound = await heard(writing, "error")
        assert kinds == ["audio-start", "audio-chunk", "audio-stop", "synthesize-stopped", "error"]
        assert sound == spoken(service, "The first half.", "The second half.")
