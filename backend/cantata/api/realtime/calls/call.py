"""A session over WebRTC: its events go to the data channel, its sound to the listener's track."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from cantata.api.context import ApiContext
from cantata.api.realtime.calls.ice import MediaAddresses
from cantata.api.realtime.calls.offer import read_offer
from cantata.api.realtime.calls.open_calls import CallObserver
from cantata.api.realtime.calls.peer import CallPeer
from cantata.api.realtime.calls.playout import PLAYOUT_RATE, Playout
from cantata.api.realtime.client_events import (
    AnyClientEvent,
    AudioAppend,
    OutputAudioClear,
    SessionUpdate,
    TranscriptionSessionUpdate,
)
from cantata.api.realtime.connection import RealtimeConnection
from cantata.api.realtime.conversation import PlayoutTimes
from cantata.api.realtime.model_choice import ModelChoice
from cantata.api.realtime.output_audio import (
    HeardAnswer,
    OutputAnswer,
    OutputAudio,
    OutputAudioListener,
)
from cantata.api.realtime.server_events import PlayoutEvent, ServerEvent, SessionEvent, new_id
from cantata.api.realtime.session_settings import PcmFormat, SoundFormat, apply_update
from cantata.api.sessions.socket import SocketConnection
from cantata.api.speech.outbox import OutboxFull
from cantata.audio.pcm import to_float
from cantata.contract.data.errors import InvalidRequest, ProtocolViolation
from cantata.contract.service import Samples
from cantata.metrics import EndReason
from cantata.speech_input.echo import SentSound
from cantata.speech_input.sound import Encoding


class CallAudio(OutputAudio):
    """Sound is played here, at the pace at which it is heard: its end and what was heard of it are
    known, and an interruption acts on the next packet."""

    def __init__(self, connection: SocketConnection, sample_rate: int, playout: Playout) -> None:
        super().__init__(connection, sample_rate)
        self._playout = playout
        self.sent = SentSound(PLAYOUT_RATE, time.monotonic)
        playout.on_played = self._note_played

    def wire_encoding(self, output: SoundFormat) -> tuple[Encoding, int]:
        return "pcm", PLAYOUT_RATE

    def begin(
        self,
        response_id: str,
        item_id: str,
        output: SoundFormat,
        playout: PlayoutTimes,
        listener: OutputAudioListener,
    ) -> None:
        super().begin(response_id, item_id, output, playout, listener)
        self._playout.begin(response_id, item_id)

    def stop_audio(self) -> None:
        super().stop_audio()
        self._playout.end()

    @property
    def is_playing(self) -> bool:
        return self._playout.playing

    def note_sent(self, sound: Samples) -> None:
        """Nothing to do: it is heard when it is played."""

    def pause(self) -> None:
        self._playout.pause()

    def resume(self) -> None:
        self._playout.resume()

    def clear(self) -> Sequence[HeardAnswer]:
        return self._playout.clear()

    async def send_sound(self, answer: OutputAnswer, data: bytes) -> None:
        if data:
            self.has_sent = True
            self._playout.feed(data)

    def _note_played(self, packet: bytes) -> None:
        self.sent.add(to_float(np.frombuffer(packet, "<i2"))[:, None])


class RealtimeCall(RealtimeConnection):
    """One call: the session of a WebSocket, but that sound comes and goes by tracks, and that the
    server knows what of an answer was heard."""

    def __init__(self, context: ApiContext, choice: ModelChoice) -> None:
        self.id = new_id("rtc")
        self._playout = Playout(self._emit_playout)
        self._peer = CallPeer()
        self._answers = choice.answers
        self._handling = asyncio.Lock()
        self.sidebands: set[CallObserver] = set()
        make_output = partial(CallAudio, playout=self._playout)
        super().__init__(self._peer, context, choice, make_output=make_output)

    async def answer(
        self, sdp: str, where: MediaAddresses, settings: Sequence[dict[str, Any]]
    ) -> str:
        """Answer an offer; `run` then waits for the client. Without an answer nothing is left.

        Args:
            settings: the session's, as in `session.update`; later ones prevail.

        Returns:
            The answer, SDP.

        Raises:
            InvalidRequest: a setting or the offer is not valid.
            Overloaded: no port is free.
        """
        try:
            for session in settings:
                await self.configure(session)
            offer = read_offer(sdp, answers=self._answers)
            return await self._peer.answer(offer, self._playout.take, where)
        except BaseException:
            await self._peer.end()
            raise

    async def configure(self, session: dict[str, Any]) -> None:
        self._check_formats(session)
        await super().configure(session)

    async def run(self) -> None:
        """Serve to the end, which also is that of a client that never comes."""
        try:
            if await self._peer.wait_until_open(self.context.settings.realtime.calls.connect_s):
                await super().run()
        finally:
            self._close_sidebands()
            await self._peer.end()

    def has_pending_text(self) -> bool:
        return super().has_pending_text() or self._playout.playing

    async def handle_binary(self, data: bytes) -> None:
        """Sound of the client's track."""
        await self.handler.append_audio(data)

    async def handle_event(self, event: AnyClientEvent) -> None:
        async with self._handling:  # of several clients, one after the other
            await self._dispatch(event)

    def emit(self, *events: ServerEvent) -> None:
        if self._has_begun:
            try:
                super().emit(*events)
            except OutboxFull:  # nobody reads the data channel
                self.abort(EndReason.CLIENT_STALLED)
        # A sideband that came before the caller knows the session.
        news = [one for one in events if not _is_session_created(one)]
        for one in tuple(self.sidebands):
            one.notify(news)

    @property
    def _has_begun(self) -> bool:
        """Whether the caller has connected."""
        return self._group is not None

    async def _dispatch(self, event: AnyClientEvent) -> None:
        match event:
            case SessionUpdate() | TranscriptionSessionUpdate():
                pass
            case _ if not self._has_begun:
                raise ProtocolViolation(
                    f"{event.type}: the caller has not connected yet; valid until then: "
                    "session.update",
                    "type",
                )
            case AudioAppend():
                raise ProtocolViolation(
                    f"{event.type}: the sound of a call comes by its audio track", "type"
                )
            case OutputAudioClear():
                self.handler.interrupt()
                return
        await super().handle_event(event)

    def _free(self) -> None:
        self._close_sidebands()
        super()._free()

    def _close_sidebands(self) -> None:
        for one in tuple(self.sidebands):
            one.close()

    def _check_formats(self, sent: dict[str, Any]) -> None:
        sound = apply_update(self.handler.settings, sent).audio
        for way, one in (("input", sound.input.format), ("output", sound.output.format)):
            if not isinstance(one, PcmFormat):
                where = f"session.audio.{way}.format"
                raise InvalidRequest(
                    f"{where}: the codec of a call is agreed in its SDP; valid: audio/pcm", where
                )

    def _emit_playout(self, event: PlayoutEvent) -> None:
        self.emit(event)
        self.on_message_handled()


def _is_session_created(event: ServerEvent) -> bool:
    return isinstance(event, SessionEvent) and event.type == "session.created"
