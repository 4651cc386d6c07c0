"""The sound that a client sends: buffered, cut into turns, and passed on to be transcribed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from cantata.api.context import ApiContext
from cantata.api.realtime.refusals import BufferFull, EmptyCommit
from cantata.api.realtime.session_settings import (
    AudioInput,
    PcmFormat,
    ServerVad,
    SessionSettings,
    SoundFormat,
)
from cantata.api.realtime.transcription_feed import (
    OnDelta,
    OnTranscript,
    Spawn,
    TranscriptionFeed,
)
from cantata.audio.pcm import BYTES_PER_SAMPLE
from cantata.contract.data.errors import InvalidAudio, Overloaded, PayloadTooLarge
from cantata.speech_input.echo import EchoFilter
from cantata.speech_input.sound import HEARD_RATE, Encoding, Heard, SoundInput
from cantata.speech_input.turns import FixedSilence, SpeechOnset, TurnDetector
from cantata.speech_input.vad import WINDOW

_MIN_MS = 100
"""Shortest sound of a commit; anything shorter holds no word."""
_WINDOWS_AT_ONCE = 16
"""Windows judged at a time: about two milliseconds of work, after which other sessions get their
turn."""
_KEPT_WINDOWS = 4
"""Windows kept beyond the padding: the detector needs them before it recognizes speech."""
TELEPHONE_RATE = 8000


def wire_encoding(sound: SoundFormat) -> tuple[Encoding, int]:
    """The format's name in `cantata.audio`, and its rate in Hz."""
    if isinstance(sound, PcmFormat):
        return "pcm", sound.rate
    return ("mulaw" if sound.type == "audio/pcmu" else "alaw"), TELEPHONE_RATE


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The user has begun to speak: an item begins."""

    item_id: str
    at_ms: int
    """Where the item begins, in ms of all sound so far."""
    words: asyncio.Future[str] | None = None
    """The item's, in the end; None: nothing transcribes it."""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The user's turn is over, by the VAD, a commit or the idle timeout: its sound is an item."""

    feed: TranscriptionFeed
    seconds: float
    at_ms: int
    """Where the item ends, in ms of all sound so far."""


class SpeechObserver(Protocol):
    """Follows the sound of turns, before anybody is told of them."""

    def start_tracking(self) -> OnTranscript | None:
        """Called before `TurnStarted`; returns who wants to be told often of its words, if any."""
        ...

    def track_window(self, window: Heard, *, is_speech: bool) -> None:
        """Take the next `WINDOW` samples of the turn that was started last."""
        ...

    def drop_turn(self) -> None:
        """Called when the turn in progress, if there is one, ends without `TurnEnded`."""
        ...


class InputAudioBuffer:
    """OpenAI's input audio buffer of one session.

    Args:
        on_delta: is told of words of utterances while they are spoken.
        echo: knows the answers when they come back.
        keeps_sound: whoever answers follows the sound; it is transcribed only where the session
            asks for that.
    """

    def __init__(
        self,
        context: ApiContext,
        settings: SessionSettings,
        spawn: Spawn,
        on_delta: OnDelta,
        observer: SpeechObserver,
        echo: EchoFilter,
        *,
        keeps_sound: bool,
    ) -> None:
        self._context = context
        self._spawn = spawn
        self._on_delta = on_delta
        self._observer = observer
        self._echo = echo
        self._settings = settings
        self._keeps_sound = keeps_sound
        self._input = SoundInput(*wire_encoding(self._options.format))
        self._sound = bytearray()
        """Samples (s16le at `HEARD_RATE`) that may become an item."""
        self._end = 0
        """Number of samples of the session so far."""
        self._waiting: list[TranscriptionFeed] = []
        """Utterances whose words are still being transcribed."""
        self._feed: TranscriptionFeed | None = None
        """The utterance in progress."""
        self._detector: TurnDetector | None = None
        self._detector_from = 0
        self._create_detector()

    @property
    def ms(self) -> int:
        """Milliseconds of all sound so far."""
        return _to_ms(self._end)

    def configure(self, settings: SessionSettings) -> None:
        """Take new settings. A turn in progress keeps those that it began with, or waits for a
        commit."""
        before, self._settings = self._options, settings
        options = self._options
        if before.format != options.format:
            self._add_unjudged(self._input.end())
            self._input = SoundInput(*wire_encoding(options.format))
        if before.turn_detection != options.turn_detection:
            self._drop_feed()
            self._create_detector()

    async def append(self, data: bytes) -> AsyncIterator[TurnStarted | TurnEnded]:
        """Take sound, and yield the turns that begin or end in it. Raises BufferFull: too much
        waits to be committed; this sound is not taken."""
        if self._detector is None:
            self._check_room(data)
            self._add_unjudged(self._input.feed(data))
            return
        received = self._input.feed(data)
        for index, start in enumerate(range(0, len(received), WINDOW)):
            window = received[start : start + WINDOW]
            self._keep_all(window)
            turns = await self._detector.feed(window)
            if self._feed is not None:
                self._feed.append(window.tobytes(), self._detector.probability)
                is_speech = self._detector.probability >= self._threshold
                self._observer.track_window(window, is_speech=is_speech)
            for turn in turns:
                at = self._detector_from + turn.at
                yield self._start_turn(at) if isinstance(turn, SpeechOnset) else self._end_turn(at)
            if self._feed is None:
                self._keep_last(self._padding + _KEPT_WINDOWS * WINDOW)
            if index % _WINDOWS_AT_ONCE == _WINDOWS_AT_ONCE - 1:
                await asyncio.sleep(0)

    def commit(self) -> TurnEnded:
        """Make an item of the buffered sound.

        Raises:
            EmptyCommit: there is too little of it.
            Overloaded: too much waits to be understood.
        """
        if _to_ms(len(self._sound) // BYTES_PER_SAMPLE) < _MIN_MS:
            raise EmptyCommit(
                f"the input buffer has less than {_MIN_MS} ms of sound; send some first"
            )
        self._add_unjudged(self._input.end())
        if self._detector is not None:
            self._detector.reset()
        return self._end_turn(self._end)

    def commit_silence(self) -> TurnEnded:
        """Make an item of what was heard while nobody spoke, whatever its length."""
        return self._end_turn(self._end)

    def clear(self) -> None:
        self._drop_feed()
        if self._detector is not None:
            self._detector.reset()
        self._keep_all(self._input.end())
        self._sound.clear()

    def stop(self) -> None:
        """Drop everything; no more sound follows."""
        self._drop_feed()

    def feed_whole(self, data: bytes) -> TranscriptionFeed:
        """Make an item of sound that a client sends as a whole.

        Raises:
            InvalidAudio: there is none in it.
            Overloaded: too much waits to be understood.
            PayloadTooLarge: it is longer than a turn may be.
        """
        self._check_whole(data)
        encoding, rate = wire_encoding(self._options.format)
        sound = SoundInput(encoding, rate)
        received = sound.feed(data).tobytes() + sound.end().tobytes()
        if self._keeps_sound and not received:
            raise InvalidAudio("item.content contains no sound: it is 0 s long", "item.content")
        feed = self._start_feed(None)
        feed.append(received)
        feed.end()
        return feed

    @property
    def _options(self) -> AudioInput:
        return self._settings.audio.input

    @property
    def _threshold(self) -> float:
        vad = self._options.turn_detection
        return 0.5 if vad is None else vad.threshold

    @property
    def _padding(self) -> int:
        vad = self._options.turn_detection
        return 0 if vad is None else vad.prefix_padding_ms * HEARD_RATE // 1000

    def _create_detector(self) -> None:
        vad, cascade = self._options.turn_detection, self._context.cascade
        self._detector_from = self._end
        self._detector = None
        if vad is not None:
            end = (
                FixedSilence(vad.silence_duration_ms)
                if isinstance(vad, ServerVad)
                else cascade.semantic_end(vad.eagerness)
            )
            self._detector = cascade.detector(vad.threshold, end, self._echo)

    def _start_feed(
        self, on_delta: OnDelta | None, on_transcript: OnTranscript | None = None
    ) -> TranscriptionFeed:
        """Begin another utterance.

        Args:
            on_delta: is told of its words, if the session asks for them.
            on_transcript: is told often of them, if anybody finds them.

        Raises:
            Overloaded: too much sound waits for that already.
        """
        feed = TranscriptionFeed(keeps_sound=self._keeps_sound)
        if not self._transcribes:
            return feed
        self._waiting = [one for one in self._waiting if one.words and not one.words.done()]
        if _seconds(sum(one.bytes for one in self._waiting)) > self._longest_s:
            raise Overloaded(
                f"more than {self._longest_s:g} s of sound is waiting to be transcribed; send "
                "this later"
            )
        told = on_delta if self._options.transcription is not None else None
        feed.start_transcription(self._context, self._settings, self._spawn, told, on_transcript)
        self._waiting.append(feed)
        return feed

    @property
    def _transcribes(self) -> bool:
        return not self._keeps_sound or self._options.transcription is not None

    def _check_room(self, data: bytes) -> None:
        seconds = _seconds(len(self._sound)) + self._to_seconds(data)
        if seconds > self._longest_s:
            raise BufferFull(
                f"the input buffer would have {seconds:.0f} s of sound; at most "
                f"{self._longest_s:g} s are accepted. Commit or clear it first",
                "audio",
            )

    def _check_whole(self, data: bytes) -> None:
        seconds = self._to_seconds(data)
        if seconds > self._longest_s:
            raise PayloadTooLarge(
                f"item.content has a part of {seconds:.0f} s of sound; at most "
                f"{self._longest_s:g} s are accepted",
                "item.content",
            )

    @property
    def _longest_s(self) -> float:
        return self._context.cascade.settings.max_sound_s

    def _to_seconds(self, data: bytes) -> float:
        """Length of sound in the session's input format."""
        encoding, rate = wire_encoding(self._options.format)
        return len(data) / (rate * (BYTES_PER_SAMPLE if encoding == "pcm" else 1))

    def _add_unjudged(self, sound: Heard) -> None:
        """Take sound in which nobody detects turns. Its words are looked for all the same, while
        more arrives."""
        self._keep_all(sound)
        if self._feed is not None:
            self._feed.append(sound.tobytes())
        elif self._detector is None and self._transcribes and len(sound):
            with suppress(Overloaded):  # the commit says so
                self._feed = self._start_feed(self._on_delta)
                self._feed.append(bytes(self._sound))

    def _keep_all(self, sound: Heard) -> None:
        self._sound += sound.tobytes()
        self._end += len(sound)

    def _start_turn(self, at: int) -> TurnStarted:
        self._keep_last(self._end - at + self._padding)
        self._feed = self._start_feed(self._on_delta, self._observer.start_tracking())
        self._feed.append(bytes(self._sound), 1.0)
        start = self._end - len(self._sound) // BYTES_PER_SAMPLE
        return TurnStarted(self._feed.item_id, _to_ms(start), self._feed.words)

    def _end_turn(self, at: int) -> TurnEnded:
        feed, self._feed = self._feed, None
        if feed is None:
            feed = self._start_feed(self._on_delta)
            feed.append(bytes(self._sound))
        feed.end()
        seconds = _seconds(len(self._sound))
        self._sound.clear()
        return TurnEnded(feed, seconds, _to_ms(at))

    def _keep_last(self, samples: int) -> None:
        del self._sound[: max(0, len(self._sound) - samples * BYTES_PER_SAMPLE)]

    def _drop_feed(self) -> None:
        if self._feed is not None:
            self._feed.drop()
            self._feed = None
            self._observer.drop_turn()


def _seconds(size: int) -> float:
    """Length of this many bytes of heard sound."""
    return size / (HEARD_RATE * BYTES_PER_SAMPLE)


def _to_ms(samples: int) -> int:
    return samples * 1000 // HEARD_RATE
