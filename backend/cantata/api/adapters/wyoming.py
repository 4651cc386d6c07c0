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
from wyoming.asr import Transcribe
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event, async_read_event, async_write_event
from wyoming.info import Describe
from wyoming.ping import Ping, Pong
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

from cantata.api.adapters.sentence_buffer import SentenceBuffer
from cantata.api.adapters.voices import resolve_model_voice
from cantata.api.adapters.wyoming_events import (
    BoundedReader,
    make_audio_chunk,
    make_audio_start,
    make_info,
)
from cantata.api.adapters.wyoming_hearing import WyomingHearing
from cantata.api.connections.acceptor import Acceptor, ConnectionGate, compute_connection_limit
from cantata.api.connections.dead_peers import DeadPeers
from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.sessions.connection import Channel, Connection
from cantata.api.speech import messages
from cantata.api.speech.outbox import AudioFrame, Item
from cantata.api.speech.utterance_queue import Mark, Speak
from cantata.contract.data.errors import CantataError, ProtocolViolation
from cantata.metrics import EndReason

IDLE_TIMEOUT_S = 3600.0
_SHARE_OF_CONNECTIONS = 4
"""Wyoming may have one in this many of the server's connections: they stay open for long and need
no key."""

logger = logging.getLogger(__name__)

_LEGACY, _STREAM = "legacy", "stream"


@asynccontextmanager
async def serve_wyoming(context: ApiContext, listener: socket.socket) -> AsyncIterator[None]:
    """Serve on a listening socket for the time of the block."""
    connections: dict[asyncio.Task[None], asyncio.Transport] = {}
    limits = context.settings.connections

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _WyomingConnection(reader, writer, context)
        task = asyncio.create_task(connection.serve(), name=connection.name)
        connections[task] = cast(asyncio.Transport, writer.transport)
        task.add_done_callback(connections.pop)

    def make_protocol() -> asyncio.Protocol:
        reader = asyncio.StreamReader(limit=context.settings.max_message_bytes)
        return asyncio.StreamReaderProtocol(reader, begin)

    max_connections = (
        limits.max_connections or compute_connection_limit()
    ) // _SHARE_OF_CONNECTIONS
    gate = ConnectionGate(max(max_connections, 1), lambda: len(connections))
    acceptor = Acceptor(listener, gate, make_protocol)
    dead_peers = DeadPeers(connections.values, limits.unanswered_s)
    try:
        yield
    finally:
        acceptor.close()
        listener.close()
        dead_peers.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


class _WyomingConnection(Connection):
    """Texts one after the other, or one text in pieces; and sound that is written down."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ApiContext
    ) -> None:
        super().__init__(context, "wyoming", IDLE_TIMEOUT_S)
        settings = context.settings
        self._reader = BoundedReader(
            reader, settings.max_message_bytes, settings.connections.head_timeout_s
        )
        self._writer = writer
        self._stream: SentenceBuffer | None = None
        """The text that is being sent."""
        self._transcribe: Transcribe | None = None
        """How the next sound is to be written down."""
        self._hearing: WyomingHearing | None = None
        """The sound that is being written down."""

    async def serve(self) -> None:
        """Serve to the end, and close the socket in any case."""
        try:
            await self.run()
        finally:
            self._writer.close()

    def begin(self) -> None:
        self._channel = _WyomingChannel(self)
        self.open(self._channel)

    def close(self) -> None:
        self._free()
        super().close()

    def stop(self, reason: EndReason = EndReason.CLIENT_LEFT) -> None:
        self._free()
        super().stop(reason)

    def has_pending_text(self) -> bool:
        return self._stream is not None or self._hearing is not None

    async def receive_loop(self) -> None:
        while True:
            try:
                event = await async_read_event(cast(asyncio.StreamReader, self._reader))
            except (ConnectionError, asyncio.IncompleteReadError):
                return
            except (KeyError, TypeError, AttributeError, RecursionError) as error:
                raise ProtocolViolation("an event must be a line of JSON with a type") from error
            if event is None:
                return
            self.touch()
            if not self._closing.is_set():
                await self._handle_event(event)
                self.on_message_handled()

    async def send(self, event: Event) -> None:
        """Send one event; a client that reads nothing counts as gone."""
        try:
            async with asyncio.timeout(self.context.settings.stall_timeout_s):
                await async_write_event(event, self._writer)
        except ConnectionError:
            self.abort()
        except TimeoutError:
            self.abort(EndReason.CLIENT_STALLED)

    async def close_gracefully(self) -> None:
        """The socket is closed by `serve`."""

    async def close_with_error(self, error: CantataError | None) -> None:
        detail = describe(error or RuntimeError()).detail
        await self.send(Error(text=detail.message, code=detail.code).event())

    async def _handle_event(self, event: Event) -> None:
        """Handle one event; kinds that this service does not have are ignored, as others do.

        Raises:
            CantataError: it is rejected. Wyoming has no recoverable errors, so this
                ends the connection.
        """
        try:
            # JSON may escape half a surrogate pair, which cannot be encoded again.
            json.dumps(event.data, ensure_ascii=False).encode()
            event.data = {key: value for key, value in event.data.items() if value is not None}
            await self._dispatch(event)
        except (KeyError, TypeError, AttributeError, UnicodeEncodeError) as error:
            raise ProtocolViolation(f"{event.type}: {error!r} is missing or wrong") from error

    async def _dispatch(self, event: Event) -> None:
        kind = event.type
        if Describe.is_type(kind):
            self._post(make_info(self.context).event())
        elif Ping.is_type(kind):
            self._post(Pong(Ping.from_event(event).text).event())
        elif Synthesize.is_type(kind):
            # Inside a stream it repeats the whole text for servers that do not stream.
            if self._stream is None:
                synthesize = Synthesize.from_event(event)
                text = await self._build_sentence_buffer(synthesize.voice)
                text.add(synthesize.text)
                text.flush(Mark(_LEGACY))
        elif SynthesizeStart.is_type(kind):
            self._stream = await self._build_sentence_buffer(
                SynthesizeStart.from_event(event).voice
            )
        elif SynthesizeChunk.is_type(kind) and self._stream is not None:
            self._stream.add(SynthesizeChunk.from_event(event).text)
        elif SynthesizeStop.is_type(kind) and self._stream is not None:
            self._stream.flush(Mark(_STREAM))
            self._stream = None
        else:
            await self._hear(event)

    async def _hear(self, event: Event) -> None:
        kind = event.type
        if Transcribe.is_type(kind):
            self._transcribe = Transcribe.from_event(event)
        elif AudioStart.is_type(kind):
            await self._begin_hearing()
        elif AudioChunk.is_type(kind):
            hearing = self._hearing or await self._begin_hearing()
            await hearing.feed(AudioChunk.from_event(event))
        elif AudioStop.is_type(kind) and self._hearing is not None:
            await self._hearing.end()

    async def _begin_hearing(self) -> WyomingHearing:
        """Write down the sound that follows."""
        if self._hearing is not None:
            await self._hearing.give_way()
        self._hearing = await WyomingHearing.begin(self.context, self._transcribe, self._post)
        assert self._group is not None
        self._hearing.start(self._group, self.name, self._on_heard)
        return self._hearing

    def _post(self, event: Event) -> None:
        self._channel.outbox.post(_QueuedEvent(event=event))

    def _on_heard(self, hearing: WyomingHearing) -> None:
        if self._hearing is hearing:
            self._hearing = self._transcribe = None
            self.on_message_handled()

    def _free(self) -> None:
        if self._hearing is not None:
            self._hearing.cancel()
            self._hearing = None

    async def _build_sentence_buffer(self, wanted: SynthesizeVoice | None) -> SentenceBuffer:
        """A sentence buffer for a client that names a voice, a language or neither."""
        name = wanted.name if wanted else None
        model_voice = await resolve_model_voice(self.context, self.context.get_model(None), name)

        def build_job(text: str) -> Speak:
            return Speak(model_voice.model, model_voice.request(text), None)

        return SentenceBuffer(self._channel, model_voice.model.max_input_characters, build_job)


class _WyomingChannel(Channel):
    """Sound in events: one start and one stop around all sentences of a text."""

    def __init__(self, connection: _WyomingConnection) -> None:
        super().__init__(connection)
        self._events = connection
        self._format: messages.AudioStart | None = None

    async def write(self, item: Item) -> None:
        match item:
            case messages.AudioStart():
                if self._format is None:
                    await self._events.send(make_audio_start(item.sample_rate, item.channels))
                self._format = item
            case AudioFrame():
                assert self._format is not None
                await self._events.send(make_audio_chunk(self._format, item))
            case messages.InputSpoken():
                await self._stop(streamed=item.context_id == _STREAM)
            case messages.ErrorMessage():
                # Clients wait for a stop, or for the end of the connection.
                await self._events.send(Error(item.error.message, item.error.code).event())
                self._events.stop()
            case _QueuedEvent():
                await self._events.send(item.event)

    async def _stop(self, *, streamed: bool) -> None:
        if self._format is None:
            # Clients wait for a stop even if there was nothing to speak.
            model = self._events.context.get_model(None)
            await self._events.send(make_audio_start(model.sample_rate, model.channels))
        await self._events.send(AudioStop().event())
        self._format = None
        if streamed:
            await self._events.send(SynthesizeStopped().event())


class _QueuedEvent(BaseModel):
    """An event that answers another at once."""

    event: Event
