"""The output of a session: every event in order, and the sound of the response in progress."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from cantata.api.realtime.conversation import PlayoutTimes
from cantata.api.realtime.input_audio import wire_encoding
from cantata.api.realtime.server_events import AudioDeltaEvent, ServerEvent
from cantata.api.realtime.session_settings import SoundFormat
from cantata.api.schemas import ErrorDetail
from cantata.api.sessions.connection import Channel
from cantata.api.sessions.socket import SocketConnection
from cantata.api.speech.messages import AudioStart, AudioTimestamps, ErrorMessage, InputSpoken
from cantata.api.speech.outbox import AudioFrame, Item, make_frames
from cantata.audio.sound_stream import SoundStream
from cantata.audio.telephone_formats import build_mono_output
from cantata.contract.service import Samples
from cantata.speech_input.echo import SentSound
from cantata.speech_input.sound import Encoding


class OutputAudioListener(Protocol):
    """Learns how the sound of a response ends."""

    def on_audio_done(self) -> None:
        """Called when all sound of the response has been sent."""
        ...

    def on_speech_failed(self, error: ErrorDetail) -> None:
        """Called when an utterance of the response could not be spoken."""
        ...


@dataclass(frozen=True, slots=True)
class HeardAnswer:
    """How much of an answer a listener has heard."""

    item_id: str
    seconds: float


@dataclass(slots=True)
class OutputAnswer:
    response_id: str
    item_id: str
    sound: SoundStream
    playout: PlayoutTimes
    listener: OutputAudioListener
    utterance_at_s: float = 0.0

    def build_delta(self, data: bytes) -> AudioDeltaEvent:
        delta = base64.b64encode(data).decode("ascii")
        return AudioDeltaEvent(response_id=self.response_id, item_id=self.item_id, delta=delta)


class OutputAudio(Channel):
    """The connection's only channel of sound."""

    def __init__(self, connection: SocketConnection, sample_rate: int) -> None:
        """`sample_rate`: Hz of the model that speaks."""
        super().__init__(connection, connection.context.settings.realtime.max_ahead_s)
        self._socket = connection
        self._sample_rate = sample_rate
        self._answer: OutputAnswer | None = None
        self.sent = SentSound(sample_rate, time.monotonic)
        self.has_sent = False

    def begin(
        self,
        response_id: str,
        item_id: str,
        output: SoundFormat,
        playout: PlayoutTimes,
        listener: OutputAudioListener,
    ) -> None:
        """Begin a response: the sound that follows belongs to it, and nothing of the one before is
        left. `listener`: learns how its sound ends."""
        encoding, rate = self.wire_encoding(output)
        sound = SoundStream(build_mono_output(encoding, self._sample_rate, rate))
        self._answer = OutputAnswer(response_id, item_id, sound, playout, listener)

    def wire_encoding(self, output: SoundFormat) -> tuple[Encoding, int]:
        """How an answer's sound is encoded, and its rate in Hz."""
        return wire_encoding(output)

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """Whether a model is answering, aloud or in text: the client is not idle then."""
        self._set_busy(True)
        try:
            yield
        finally:
            self._set_busy(False)

    async def say(self, sound: Samples) -> None:
        """Send sound of the answer, and wait until the client has little enough left to play."""
        assert self._answer is not None, "sound belongs to an answer"
        send_pacer = self.utterances.send_pacer
        for frame in make_frames(self._answer.response_id, sound, self._sample_rate):
            await self.outbox.put(frame)
            send_pacer.take(frame.samples / self._sample_rate)
        await send_pacer.wait()

    def end_audio(self) -> None:
        assert self._answer is not None, "sound belongs to an answer"
        self.outbox.post(InputSpoken(context_id=self._answer.response_id))

    def stop_audio(self) -> None:
        """Drop the rest of the answer's sound: the answer is over."""
        if self._answer is not None:
            self._answer.sound.drop()
            self._answer = None

    @property
    def is_playing(self) -> bool:
        """Whether the client, if it plays sound as it comes, has some left to play."""
        return asyncio.get_running_loop().time() < self.utterances.heard_until

    def stopped_playing(self) -> None:
        """The client plays no more of what it has."""
        self.utterances.send_pacer.reset()
        self.sent.cut()

    def note_sent(self, sound: Samples) -> None:
        """Sound of the answer leaves."""
        self.sent.add(sound)

    def pause(self) -> None:
        """Play nothing for now, if the server plays the answer: somebody may be interrupting."""

    def resume(self) -> None:
        """Go on where `pause` stopped."""

    def clear(self) -> Sequence[HeardAnswer]:
        """Play no more of what was made, because the user speaks or wants silence.

        Returns:
            The answers that were cut short; none if the client plays them, since it says itself
            where it stopped.
        """
        return ()

    async def write(self, item: Item) -> None:
        if isinstance(item, ServerEvent):
            await self._socket.send(item)
            return
        answer = self._answer
        if answer is None:
            return
        match item:
            case AudioFrame():
                answer.playout.sound_s += item.samples / self._sample_rate
                self.note_sent(item.sound)
                await self.send_sound(answer, answer.sound.feed(item.sound))
            case AudioStart():
                answer.utterance_at_s = answer.playout.sound_s
            case AudioTimestamps():
                for word in item.words:
                    answer.playout.ends_s.append(answer.utterance_at_s + word.end)
                    answer.playout.text_ends.append(word.text_end)
            case InputSpoken(context_id=answer.response_id):
                answer.playout.whole = True
                await self.send_sound(answer, answer.sound.end())
                if self._answer is answer:
                    answer.listener.on_audio_done()
            case ErrorMessage(context_id=answer.response_id):
                answer.listener.on_speech_failed(item.error)

    def free(self) -> None:
        self.stop_audio()

    async def send_sound(self, answer: OutputAnswer, data: bytes) -> None:
        """Send more of an answer, as `wire_encoding` says; maybe nothing."""
        if data:
            self.has_sent = True
            await self._socket.send(answer.build_delta(data))
