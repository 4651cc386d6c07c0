"""Wyoming's speech to text over TCP, with the client of its own package."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from fake_service import FakeService, eventually
from numpy.typing import NDArray
from recorded_speech import RATE, encode, silence, speech
from test_wyoming import next_event, serving
from wyoming.asr import Transcribe, Transcript, TranscriptChunk
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Describe, Info

from cantata.api.app import create_app
from cantata.api.server.listening import listen
from cantata.api.settings import ServerSettings
from cantata.contract.data.errors import RequestFailed
from cantata.speech_input.sound import HEARD_RATE

STREAMED = ["transcript-start", "transcript-chunk", "transcript", "transcript-stop"]


@pytest.fixture
async def service() -> FakeService:
    return FakeService()


@pytest.fixture
async def port(service: FakeService) -> AsyncIterator[int]:
    async with serving(service) as port:
        yield port
    assert service.ears.counts.open == 0


@pytest.fixture
async def client(port: int) -> AsyncIterator[AsyncTcpClient]:
    async with AsyncTcpClient("127.0.0.1", port) as client:
        yield client


async def send_sound(
    client: AsyncTcpClient, *parts: NDArray[np.float32], rate: int = RATE, channels: int = 1
) -> None:
    data = encode(np.concatenate(parts), rate=rate)
    for start in range(0, len(data), 2048):
        chunk = AudioChunk(rate, 2, channels, data[start : start + 2048])
        await client.write_event(chunk.event())


async def say(client: AsyncTcpClient, *parts: NDArray[np.float32], **order: Any) -> list[Event]:
    """The answer to some sound."""
    await client.write_event(Transcribe(**order).event())
    await client.write_event(AudioStart(RATE, 2, 1).event())
    await send_sound(client, *parts)
    await client.write_event(AudioStop().event())
    return await answer(client)


async def answer(client: AsyncTcpClient) -> list[Event]:
    events: list[Event] = []
    while not events or events[-1].type not in ("transcript-stop", "error"):
        event = await next_event(client)
        assert event is not None
        events.append(event)
    return events


def text(events: list[Event]) -> str:
    (said,) = [Transcript.from_event(one) for one in events if Transcript.is_type(one.type)]
    return said.text


async def test_models_are_described(client: AsyncTcpClient, service: FakeService) -> None:
    await client.write_event(Describe().event())
    event = await next_event(client)
    assert event is not None
    (program,) = Info.from_event(event).asr
    assert program.supports_transcript_streaming
    (model,) = program.models
    assert (model.name, model.languages, model.installed) == ("ears", ["en", "de"], True)
    service.transcription_models = {}
    await client.write_event(Describe().event())
    event = await next_event(client)
    assert event is not None
    assert Info.from_event(event).asr == []


async def test_sound_is_written_down(client: AsyncTcpClient, service: FakeService) -> None:
    events = await say(client, silence(0.5), speech(), silence(0.5), language="en")
    assert [event.type for event in events] == STREAMED
    assert text(events).startswith("word0 word1")
    again = await say(client, speech(), name="ears", language="de", transcript_names=["Cantata"])
    assert text(again).startswith("word0")
    first, second = service.ears.counts.requests
    assert (first.language, second.language, second.prompt) == ("en", "de", "Cantata")
    heard = [len(one) / HEARD_RATE for one in service.ears.counts.sounds]
    assert heard == pytest.approx([3.4, 3.4], abs=0.6)


async def test_long_sound_is_told_piece_by_piece(client: AsyncTcpClient) -> None:
    await client.write_event(Transcribe().event())
    await send_sound(client, speech(), silence(2), speech(), silence(2))
    events = [await next_event(client) for _ in range(3)]
    assert [event.type if event else "" for event in events] == [*STREAMED[:2], STREAMED[1]]
    await client.write_event(AudioStop().event())
    rest = await answer(client)
    pieces = [TranscriptChunk.from_event(event).text for event in events[1:] if event]
    assert text(rest) == "".join(pieces)


async def test_silence_has_an_empty_transcript(
    client: AsyncTcpClient, service: FakeService
) -> None:
    for parts in ([silence(2)], [silence(0)]):
        events = await say(client, *parts)
        assert [event.type for event in events] == [STREAMED[0], *STREAMED[2:]]
        assert text(events) == ""
    assert not service.ears.counts.requests


async def test_stereo_at_48_khz(client: AsyncTcpClient, service: FakeService) -> None:
    both = np.repeat(speech(48_000)[:, None], 2, axis=1)
    await send_sound(client, both, rate=48_000, channels=2)
    await client.write_event(AudioStop().event())
    assert text(await answer(client)).startswith("word0")
    assert len(service.ears.counts.sounds[0]) / HEARD_RATE == pytest.approx(3.4, abs=0.3)


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([Transcribe(name="nobody"), AudioStart(RATE, 2, 1)], "no model 'nobody'"),
        ([AudioChunk(RATE, 4, 1, bytes(64))], "width is 4; valid: 2"),
        ([AudioChunk(100, 2, 1, bytes(64))], "rate is 100; valid: 8000 to 48000"),
        ([AudioChunk(RATE, 2, 0, bytes(64))], "channels is 0; valid: 1 to 8"),
        (
            [AudioChunk(RATE, 2, 1, bytes(64)), AudioChunk(8000, 2, 1, bytes(64))],
            "must stay the same",
        ),
        ([AudioChunk(RATE, 2, "two", bytes(64))], "is missing or wrong"),  # type: ignore[arg-type]
        (
            [Transcribe(language=5), AudioStart(RATE, 2, 1)],  # type: ignore[arg-type]
            "language must be text",
        ),
    ],
)
async def test_wrong_sound_ends_the_connection(
    client: AsyncTcpClient, events: list[Any], says: str
) -> None:
    for event in events:
        await client.write_event(event.event())
    event = await next_event(client)
    assert event is not None
    assert says in Error.from_event(event).text
    assert await next_event(client) is None


async def test_a_server_that_only_speaks_says_so(
    client: AsyncTcpClient, service: FakeService
) -> None:
    service.transcription_models = {}
    (event,) = await say(client, silence(0))
    assert "that transcribes" in Error.from_event(event).text


async def test_a_failure_ends_the_connection(client: AsyncTcpClient, service: FakeService) -> None:
    service.ears.behaviour.error = RequestFailed("it broke")
    (event,) = await say(client, speech())
    assert Error.from_event(event).text == "it broke"
    assert await next_event(client) is None


async def test_a_new_start_drops_what_has_no_end(
    client: AsyncTcpClient, service: FakeService
) -> None:
    await client.write_event(AudioStart(RATE, 2, 1).event())
    await send_sound(client, speech())
    await eventually(lambda: service.ears.counts.open == 1)
    assert text(await say(client, silence(1))) == ""
    # What has one is finished first.
    for _ in range(2):
        await client.write_event(AudioStart(RATE, 2, 1).event())
        await send_sound(client, speech())
        await client.write_event(AudioStop().event())
    assert text(await answer(client))
    assert text(await answer(client))


async def test_a_disconnect_ends_the_work(port: int, service: FakeService) -> None:
    service.ears.behaviour.may_finish = asyncio.Event()
    async with AsyncTcpClient("127.0.0.1", port) as client:
        await send_sound(client, speech())
        await eventually(lambda: service.ears.counts.open == 1)
        await client.write_event(AudioStop().event())
    await eventually(lambda: service.ears.counts.open == 0)
    assert not service.ears.counts.finished


async def test_what_is_being_said_is_written_down_while_the_server_stops(
    service: FakeService,
) -> None:
    listener = listen("127.0.0.1", 0)
    app = create_app(service, ServerSettings(), wyoming=listener)
    port: int = listener.getsockname()[1]
    async with (
        app.router.lifespan_context(app),
        AsyncTcpClient("127.0.0.1", port) as client,
    ):
        await eventually(lambda: service.ready)
        await client.write_event(AudioStart(RATE, 2, 1).event())
        await send_sound(client, speech()[: 2 * RATE])
        await eventually(lambda: service.ears.counts.open == 1)
        app.state.context.drain.announce()
        await send_sound(client, speech()[2 * RATE :])
        await client.write_event(AudioStop().event())
        assert text(await answer(client))
        refused = await next_event(client)
        assert refused
        assert Error.from_event(refused).code == "going_away"
        assert await next_event(client) is None
