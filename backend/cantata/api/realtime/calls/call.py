"""A session over WebRTC."""

from __future__ import annotations

from functools import partial
from typing import Any

from cantata.api.context import ApiContext
from cantata.api.realtime.calls.call_audio import CallAudio
from cantata.api.realtime.calls.ice import MediaAddresses
from cantata.api.realtime.calls.offer import read_offer
from cantata.api.realtime.calls.peer import CallPeer
from cantata.api.realtime.calls.playout import Playout
from cantata.api.realtime.choice import ModelChoice
from cantata.api.realtime.client_events import (
    AnyClientEvent,
    AudioAppend,
    OutputAudioClear,
    SessionUpdate,
    TranscriptionSessionUpdate,
)
from cantata.api.realtime.connection import RealtimeConnection
from cantata.api.realtime.server_events import PlayoutEvent, new_id
from cantata.api.realtime.session import PcmFormat, updated
from cantata.api.speech.outbox import OutboxFull
from cantata.contract.data.errors import InvalidRequest, ProtocolViolation
from cantata.metrics import EndReason


class RealtimeCall(RealtimeConnection):
    """One call: the session of a WebSocket, but that sound comes and goes by tracks, and that the
    server knows what of an answer was heard."""

    def __init__(self, context: ApiContext, choice: ModelChoice) -> None:
        self.id = new_id("rtc")
        self._playout = Playout(self._tell)
        self._peer = CallPeer()
        self._answers = choice.answers
        make_output = partial(CallAudio, playout=self._playout)
        super().__init__(self._peer, context, choice, make_output=make_output)

    async def answer(self, sdp: str, where: MediaAddresses, session: dict[str, Any]) -> str:
        """Answer an offer; `run` then waits for the client. Without an answer nothing is left.

        Args:
            sdp: the offer.
            where: to listen for the client.
            session: its settings, as in `session.update`.

        Returns:
            The answer, SDP.

        Raises:
            InvalidRequest: a setting or the offer is not valid.
            Overloaded: no port is free.
        """
        try:
            if session:
                self._check_formats(session)
                await self.dialogue.update(session)
            offer = read_offer(sdp, answers=self._answers)
            return await self._peer.answer(offer, self._playout.take, where)
        except BaseException:
            await self._peer.end()
            raise

    async def run(self) -> None:
        """Serve to the end, which also is that of a client that never comes."""
        try:
            if await self._peer.wait_until_open(self.context.settings.realtime.calls.connect_s):
                await super().run()
        finally:
            await self._peer.end()

    def has_pending_text(self) -> bool:
        return super().has_pending_text() or self._playout.playing

    async def take_binary(self, data: bytes) -> None:
        """Sound of the client's track."""
        await self.dialogue.hear(data)

    async def act(self, event: AnyClientEvent) -> None:
        match event:
            case AudioAppend():
                raise ProtocolViolation(
                    f"{event.type}: the sound of a call comes by its audio track", "type"
                )
            case OutputAudioClear():
                self.dialogue.cut()
                return
            case SessionUpdate() | TranscriptionSessionUpdate():
                self._check_formats(event.session)
        await super().act(event)

    def _check_formats(self, sent: dict[str, Any]) -> None:
        sound = updated(self.dialogue.settings, sent).audio
        for way, one in (("input", sound.input.format), ("output", sound.output.format)):
            if not isinstance(one, PcmFormat):
                where = f"session.audio.{way}.format"
                raise InvalidRequest(
                    f"{where}: the codec of a call is agreed in its SDP; valid: audio/pcm", where
                )

    def _tell(self, event: PlayoutEvent) -> None:
        try:
            self.emit(event)
        except OutboxFull:  # nobody reads the data channel
            self.hang_up(EndReason.CLIENT_STALLED)
        else:
            self.on_message_handled()
