"""The output of a call: its events go to the data channel, its sound to the listener's track."""

from __future__ import annotations

from collections.abc import Sequence

from cantata.api.realtime.calls.playout import PLAYOUT_RATE, Playout
from cantata.api.realtime.conversation import PlayoutTimes
from cantata.api.realtime.output_audio import (
    HeardAnswer,
    OutputAudio,
    OutputAudioOwner,
    SpokenAnswer,
)
from cantata.api.realtime.session import SoundFormat
from cantata.api.sessions.socket import SocketConnection
from cantata.speech_input.sound import Encoding


class CallAudio(OutputAudio):
    """Sound is played here, at the pace at which it is heard: its end and what was heard of it are
    known, and an interruption acts on the next packet."""

    def __init__(
        self,
        connection: SocketConnection,
        sample_rate: int,
        listener: OutputAudioOwner,
        playout: Playout,
    ) -> None:
        """`sample_rate`: Hz of the model that speaks."""
        super().__init__(connection, sample_rate, listener)
        self._playout = playout

    def wire_encoding(self, output: SoundFormat) -> tuple[Encoding, int]:
        return "pcm", PLAYOUT_RATE

    def begin(
        self, response_id: str, item_id: str, output: SoundFormat, spoken: PlayoutTimes
    ) -> None:
        super().begin(response_id, item_id, output, spoken)
        self._playout.begin(response_id, item_id)

    def stop_audio(self) -> None:
        super().stop_audio()
        self._playout.end()

    def cut(self) -> Sequence[HeardAnswer]:
        return self._playout.clear()

    async def send_sound(self, answer: SpokenAnswer, data: bytes) -> None:
        if data:
            self.has_sent = True
            self._playout.feed(data)
