"""Wyoming, the protocol of Home Assistant's voice services: events over TCP."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from pydantic import BaseModel
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event, async_read_event, async_write_event
from wyoming.info import Attribution, Describe, Info, TtsProgram, TtsVoice
from wyoming.ping import Ping, Pong
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

from cantata import __version__
from cantata.api import messages
from cantata.api.adapters.connection import Channel, Connection
from cantata.api.adapters.spoken_text import SpokenText
from cantata.api.adapters.voices import narrator_of
from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.outbox import AudioFrame, Item
from cantata.api.speaker import Mark, Speak
from cantata.audio.pcm import BYTES_PER_SAMPLE
from cantata.contract.errors import CantataError, ProtocolViolation

IDLE_TIMEOUT_S = 3600.0

logger = logging.getLogger(__name__)

_LEGACY, _STREAM = "legacy", "stream"
_ATTRIBUTION = Attribution(name="Cantata", url="")
_UNKNOWN_LANGUAGES = ("en",)
"""Home Assistant offers no voice that has no language."""


@asynccontextmanager
async def wyoming_server(context: ApiContext, listener: socket.socket) -> AsyncIterator[None]:
    """Serve on a listening socket for the time of the block."""
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(reader, writer, context)
        task = asyncio.create_task(connection.serve(), name=connection.name)
        connections.add(task)
        task.add_done_callback(connections.discard)

    limit = context.settings.max_message_bytes
    server = await asyncio.start_server(accept, sock=listener, limit=limit)
    try:
        yield
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


class _Connection(Connection):
    """Texts in, one after the other, or one as it is written."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ApiContext
    ) -> None:
        super().__init__(context, "wyoming", IDLE_TIMEOUT_S)
        self._reader = _BoundedReader(reader, context.settings.max_message_bytes)
        self._writer = writer
        self._stream: SpokenText | None = None
        """The text that is being written."""

    async def serve(self) -> None:
        """Serve to the end, and close the socket whatever it was."""
        peer = self._writer.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            await self.run()
        finally:
            self._writer.close()

    def begin(self) -> None:
        self._channel = _Channel(self)
        self.open(self._channel)

    async def read(self) -> None:
        while True:
            try:
                event = await async_read_event(cast(asyncio.StreamReader, self._reader))
            except (ConnectionError, asyncio.IncompleteReadError):
                return
            except (KeyError, TypeError, AttributeError, RecursionError) as error:
                raise ProtocolViolation("an event is a line of JSON with a type") from error
            if event is None:
                return
            self.touch()
            if not self._closing.is_set():
                await self._take(event)

    async def send(self, event: Event) -> None:
        """One event; a client that takes nothing counts as gone."""
        try:
            async with asyncio.timeout(self.context.settings.stall_timeout_s):
                await async_write_event(event, self._writer)
        except (ConnectionError, TimeoutError):
            self.hang_up()

    async def say_farewell(self) -> None:
        """The socket is closed by `serve`."""

    async def say_last_words(self, error: CantataError | None) -> None:
        detail = describe(error or RuntimeError()).detail
        await self.send(Error(text=detail.message, code=detail.code).event())

    async def _take(self, event: Event) -> None:
        """Act on one event; kinds that this service does not have are ignored, as others do.

        Raises:
            CantataError: it is refused. Wyoming has no answer that lets a client go on, so this
                ends the connection.
        """
        try:
            # JSON may escape half a surrogate pair, which nothing can write again.
            json.dumps(event.data, ensure_ascii=False).encode()
            await self._act(event)
        except (KeyError, TypeError, AttributeError, UnicodeEncodeError) as error:
            raise ProtocolViolation(f"{event.type}: {error!r} is missing or wrong") from error

    async def _act(self, event: Event) -> None:
        kind = event.type
        if Describe.is_type(kind):
            self._channel.outbox.post(_Answer(event=_info(self.context).event()))
        elif Ping.is_type(kind):
            self._channel.outbox.post(_Answer(event=Pong(Ping.from_event(event).text).event()))
        elif Synthesize.is_type(kind):
            # Inside a stream it repeats the whole text for servers that do not stream.
            if self._stream is None:
                order = Synthesize.from_event(event)
                text = await self._spoken_text(order.voice)
                text.add(order.text)
                text.flush(Mark(_LEGACY))
        elif SynthesizeStart.is_type(kind):
            self._stream = await self._spoken_text(SynthesizeStart.from_event(event).voice)
        elif SynthesizeChunk.is_type(kind) and self._stream is not None:
            self._stream.add(SynthesizeChunk.from_event(event).text)
        elif SynthesizeStop.is_type(kind) and self._stream is not None:
            self._stream.flush(Mark(_STREAM))
            self._stream = None

    async def _spoken_text(self, wanted: SynthesizeVoice | None) -> SpokenText:
        """For a client that names a voice, or only a language, or nothing."""
        name = wanted.name if wanted else None
        narrator = await narrator_of(self.context, self.context.model(None), name)

        def job(text: str) -> Speak:
            return Speak(narrator.model, narrator.request(text), None)

        return SpokenText(self._channel, narrator.model.max_input_characters, job)


class _Channel(Channel):
    """Sound in events: one start and one stop around all sentences of a text."""

    def __init__(self, connection: _Connection) -> None:
        super().__init__(connection)
        self._events = connection
        self._format: messages.AudioStart | None = None
        """Of the sound that was started."""

    async def write(self, item: Item) -> None:
        match item:
            case messages.AudioStart():
                if self._format is None:
                    await self._events.send(_start(item.sample_rate, item.channels))
                self._format = item
            case AudioFrame():
                assert self._format is not None
                await self._events.send(_chunk(self._format, item))
            case messages.InputSpoken():
                await self._stop(streamed=item.context_id == _STREAM)
            case messages.ErrorMessage():
                # Clients wait for a stop, or for the end of the connection.
                await self._events.send(Error(item.error.message, item.error.code).event())
                self._events.stop()
            case _Answer():
                await self._events.send(item.event)

    async def _stop(self, *, streamed: bool) -> None:
        if self._format is None:
            # Clients wait for a stop also where nothing was to be said.
            model = self._events.context.model(None)
            await self._events.send(_start(model.sample_rate, model.channels))
        await self._events.send(AudioStop().event())
        self._format = None
        if streamed:
            await self._events.send(SynthesizeStopped().event())


class _Answer(BaseModel):
    """An event that answers another at once."""

    event: Event


class _BoundedReader:
    """What `async_read_event` reads from; an event that announces too much is none."""

    def __init__(self, reader: asyncio.StreamReader, max_bytes: int) -> None:
        self._reader = reader
        self._max_bytes = max_bytes

    async def readline(self) -> bytes:
        """The next line; one beyond the reader's own limit raises ValueError."""
        return await self._reader.readline()

    async def readexactly(self, size: int) -> bytes:
        """So many bytes."""
        if size > self._max_bytes:
            raise ValueError(f"{size} bytes are too many for an event")
        return await self._reader.readexactly(size)


def _info(context: ApiContext) -> Info:
    voices = [
        TtsVoice(
            name=voice.id,
            attribution=_ATTRIBUTION,
            installed=True,
            description=voice.description or voice.name,
            version=__version__,
            languages=list(model.capabilities.languages or _UNKNOWN_LANGUAGES),
        )
        for model in context.service.models.values()
        for voice in model.voices
    ]
    program = TtsProgram(
        name="cantata",
        attribution=_ATTRIBUTION,
        installed=True,
        description="Streaming speech",
        version=__version__,
        voices=voices,
        supports_synthesize_streaming=True,
    )
    return Info(tts=[program])


def _start(sample_rate: int, channels: int) -> Event:
    return AudioStart(rate=sample_rate, width=BYTES_PER_SAMPLE, channels=channels).event()


def _chunk(sound: messages.AudioStart, frame: AudioFrame) -> Event:
    chunk = AudioChunk(
        rate=sound.sample_rate,
        width=BYTES_PER_SAMPLE,
        channels=sound.channels,
        audio=frame.data,
    )
    return chunk.event()
