"""The parts of a stream that its recognizer gets: speech from its beginning to a pause."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from cantata.api.transcription.live_events import LiveOptions, LiveTranscript
from cantata.contract.data.transcripts import Transcript
from cantata.speech_input.segmenter import SegmenterOptions
from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.transcription import HeardPiece
from cantata.speech_input.vad import WINDOW

KEPT_WINDOWS = 10
"""Windows from before the speech that the recognizer gets, the first two of speech among them. Not
more than the recognizer's own cutter keeps: times of words count from the first of them."""


@dataclass(slots=True)
class Ahead:
    """The sound of a stream that the recognizer has not taken."""

    limit: float
    """Samples; then the sender waits."""
    samples: int = 0
    _has_room: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, samples: int) -> None:
        """Count more, or less, of it."""
        self.samples += samples
        if self.samples <= self.limit:
            self._has_room.set()
        else:
            self._has_room.clear()

    async def wait(self) -> None:
        """Wait until there is room for more."""
        if self.samples > self.limit:
            await self._has_room.wait()


class SpeechPart:
    """Speech from its beginning to a pause: without pauses in which its recognizer leaves something
    out, so that times within it are times of the stream.

    Args:
        start: samples of the stream before it.
    """

    def __init__(self, start: int, ahead: Ahead) -> None:
        self.start_s = start / HEARD_RATE
        self.ends_utterance = self.answers_flush = False
        self._ahead = ahead
        self._waiting: asyncio.Queue[HeardPiece | None] = asyncio.Queue()
        self._is_taken = False

    def feed(self, piece: HeardPiece) -> None:
        self._ahead.add(len(piece.sound))
        self._waiting.put_nowait(piece)

    def end(self, *, ends_utterance: bool, answers_flush: bool) -> None:
        self.ends_utterance, self.answers_flush = ends_utterance, answers_flush
        self._waiting.put_nowait(None)

    async def pieces(self) -> AsyncIterator[HeardPiece]:
        """Its sound, while it arrives."""
        while not self._is_taken:
            piece = await self._waiting.get()
            if piece is None:
                self._is_taken = True
                return
            self._ahead.add(-len(piece.sound))
            yield piece

    async def skip(self) -> None:
        """Drop the rest of its sound, up to its end."""
        async for _ in self.pieces():
            pass


class PartReport:
    """Turns the transcripts of a part's windows into those of the stream. `start_s`: seconds of the
    stream before the part."""

    def __init__(
        self, start_s: float, report: Callable[[LiveTranscript], None], *, partials: bool
    ) -> None:
        self._start_s = start_s
        self._report = report
        self._partials = partials
        self._last: LiveTranscript | None = None
        """The final transcript of a window, until it is clear whether it is the last."""

    def take(self, transcript: Transcript, is_last: bool) -> None:
        """The transcript of the present window, and whether it is final."""
        self._pass_on()
        if is_last:
            self._last = LiveTranscript(transcript, self._start_s, is_final=True)
            # A window that is cut is followed by the next at once.
            self._start_s += transcript.seconds
        elif self._partials and transcript.text:
            self._report(LiveTranscript(transcript, self._start_s, is_final=False))

    def end(self, *, ends_utterance: bool, answers_flush: bool) -> None:
        last = self._last or LiveTranscript(Transcript(""), self._start_s, is_final=True)
        self._last = LiveTranscript(
            last.transcript, last.start_s, True, ends_utterance, answers_flush
        )
        self._pass_on()

    def _pass_on(self) -> None:
        if self._last is not None:
            self._report(self._last)
            self._last = None


class PartEnd:
    """Implements `TurnEnd`: ends a part where the utterance ends, or where the recognizer would
    leave out the rest of a pause."""

    def __init__(self, options: LiveOptions) -> None:
        self._pauses = SegmenterOptions(max_s=0.0)
        asked = (options.endpointing_s, options.utterance_end_s)
        self._silence_s = min((one for one in asked if one is not None), default=float("inf"))
        self._length = 0

    def begin(self) -> None:
        """A part begins, with the windows kept from before."""
        self._length = KEPT_WINDOWS * WINDOW

    def hear(self, window: Heard) -> None:
        """Count the part's length."""
        self._length += len(window)

    async def over(self, silence: int) -> bool:
        """Whether the part ends after this many samples of silence."""
        pause_s = self._pauses.pause_after(self._length / HEARD_RATE)
        return silence / HEARD_RATE >= min(self._silence_s, pause_s)
