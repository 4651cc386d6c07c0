"""A stream of sound, written down while it arrives.

Utterances begin with speech and end with silence. Their words are known soon after that: the
recognizer is asked when a pause begins, before it is long enough to be the end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import numpy as np

from cantata.api.transcription.live_events import (
    LiveEvent,
    LiveFailure,
    LiveOptions,
    LiveTranscript,
    SpeechHeard,
    WordsEnded,
)
from cantata.api.transcription.live_parts import (
    KEPT_WINDOWS,
    Ahead,
    PartEnd,
    PartReport,
    SpeechPart,
)
from cantata.contract.data.errors import CantataError
from cantata.contract.data.transcripts import Transcript
from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.transcription import HeardPiece, Transcriber, UtteranceOptions
from cantata.speech_input.turns import HYSTERESIS, SpeechOnset, TurnDetector
from cantata.speech_input.vad import WINDOW, SpeechJudge

MAX_AHEAD_S = 60.0
"""Most sound that waits for the recognizer; then the sender waits."""
SOUND_GAP_S = 3.0
"""When no sound comes for this long, the speaker has finished."""
_KEPT_OF_PAUSE = 6
"""Of the windows kept before a part, those of the pause that ended another. Its beginning belongs
to that one."""
_JUDGED_AT_ONCE = 16
"""Windows judged before other tasks get their turn."""
_MAX_PART_S = 86_400.0
"""Long speech is cut by the recognizer's own cutter, without an end."""


class _SilenceNoted:
    """`utterance_end_s` of silence, at this place among the parts."""


class LiveTranscription:
    """Follows one stream. `feed`, `flush` and `end` are called in order; `run` reports.

    Args:
        judge: of single windows, new for each stream.
        report: takes events, in order.
    """

    def __init__(
        self,
        transcriber: Transcriber,
        judge: SpeechJudge,
        options: LiveOptions,
        report: Callable[[LiveEvent], None],
    ) -> None:
        self._transcriber = transcriber
        self._options = options
        self._report = report
        self._detector = TurnDetector(judge, options.threshold, PartEnd(options), _MAX_PART_S)
        self._rest: Heard = np.zeros(0, np.int16)
        """Samples that do not fill a window yet."""
        self._heard = 0
        """Samples of the stream that were judged."""
        self._before: deque[HeardPiece] = deque(maxlen=KEPT_WINDOWS)
        """The last windows."""
        self._part: SpeechPart | None = None
        self._quiet = 0
        """Samples of silence since the last speech."""
        self._is_open = False
        """An utterance has begun, and its end has not been reported."""
        self._is_fresh = False
        """There has been speech since `WordsEnded`."""
        self._work: asyncio.Queue[SpeechPart | _SilenceNoted | LiveEvent | None] = asyncio.Queue()
        self._ahead = Ahead(MAX_AHEAD_S * HEARD_RATE)
        self._is_reporting = False
        self._gap: asyncio.TimerHandle | None = None
        self._last_word_end_s: float | None = None
        """End of the last word since `WordsEnded`."""

    @property
    def seconds(self) -> float:
        return (self._heard + len(self._rest)) / HEARD_RATE

    @property
    def is_busy(self) -> bool:
        """Whether somebody speaks, or something is not reported yet."""
        return self._part is not None or self._is_reporting or not self._work.empty()

    async def feed(self, sound: Heard) -> None:
        """Add sound. Waits while far too much of it is not recognized yet."""
        self._stop_timer()
        sound = np.concatenate([self._rest, sound])
        whole = len(sound) - len(sound) % WINDOW
        self._rest = sound[whole:]
        for index, start in enumerate(range(0, whole, WINDOW)):
            await self._hear(sound[start : start + WINDOW])
            await self._ahead.wait()
            if index % _JUDGED_AT_ONCE == _JUDGED_AT_ONCE - 1:
                await asyncio.sleep(0)
        if self._part is not None:
            self._gap = asyncio.get_running_loop().call_later(SOUND_GAP_S, self._give_up_waiting)

    def flush(self) -> None:
        """Report what was said so far as final, without waiting for silence; nothing is reported as
        an empty transcript."""
        self._stop_timer()
        if self._part is not None:
            self._end_part(answers_flush=True)
            self._before.clear()
        else:
            self._add(self._build_empty(answers_flush=True))

    def end(self) -> None:
        """No sound follows: `run` ends once all has been reported."""
        self._stop_timer()
        if self._part is not None:
            if len(self._rest):
                self._part.feed(HeardPiece(self._rest, self._detector.probability))
            self._end_part(ends_utterance=True)
        self._work.put_nowait(None)

    def close(self) -> None:
        """Free what is held, if there may not have been an `end`."""
        self._stop_timer()

    async def run(self, on_report: Callable[[], None]) -> None:
        """Recognize and report, part by part, until the end. `on_report`: is called after each
        report of something that is final, when `is_busy` no longer counts it."""
        while (work := await self._work.get()) is not None:
            self._is_reporting = True
            if isinstance(work, SpeechPart):
                await self._transcribe(work)
            elif isinstance(work, _SilenceNoted):
                self._report_words_end()
            else:
                self._report(work)
            self._is_reporting = False
            on_report()

    async def _hear(self, window: Heard) -> None:
        turns = await self._detector.feed(window)
        probability = self._detector.probability
        piece = HeardPiece(window, probability)
        self._heard += WINDOW
        self._before.append(piece)
        is_speech = probability >= self._options.threshold - HYSTERESIS
        self._quiet = 0 if is_speech and self._part is not None else self._quiet + WINDOW
        if self._part is not None:
            self._part.feed(piece)
        for turn in turns:
            if isinstance(turn, SpeechOnset):
                self._begin_part(turn)
            else:
                self._end_part(ends_utterance=self._has_reached(self._options.endpointing_s))
                for _ in range(len(self._before) - _KEPT_OF_PAUSE):
                    self._before.popleft()
        self._note_silence()

    def _begin_part(self, turn: SpeechOnset) -> None:
        self._add(SpeechHeard(turn.at / HEARD_RATE))
        self._is_open = self._is_fresh = True
        self._quiet = 0
        self._part = SpeechPart(self._heard - len(self._before) * WINDOW, self._ahead)
        for piece in self._before:
            self._part.feed(piece)
        self._add(self._part)

    def _end_part(self, *, ends_utterance: bool = False, answers_flush: bool = False) -> None:
        assert self._part is not None
        self._part.end(ends_utterance=ends_utterance, answers_flush=answers_flush)
        self._part = None
        self._detector.reset()
        if ends_utterance:
            self._is_open = False

    def _note_silence(self) -> None:
        """Report what silence means that goes on after a part."""
        if self._part is not None:
            return
        if self._is_open and self._has_reached(self._options.endpointing_s):
            self._is_open = False
            self._add(self._build_empty(ends_utterance=True))
        if self._is_fresh and self._has_reached(self._options.utterance_end_s):
            self._is_fresh = False
            self._add(_SilenceNoted())

    def _has_reached(self, limit_s: float | None) -> bool:
        return limit_s is not None and self._quiet >= limit_s * HEARD_RATE

    def _give_up_waiting(self) -> None:
        """The sender has stopped sending in mid-speech, as those do that have a key to speak."""
        if self._part is not None:
            self._quiet = round(SOUND_GAP_S * HEARD_RATE)
            self._end_part(ends_utterance=self._options.endpointing_s is not None)
            self._before.clear()
            self._note_silence()

    def _build_empty(
        self, *, ends_utterance: bool = False, answers_flush: bool = False
    ) -> LiveTranscript:
        start_s = self._heard / HEARD_RATE
        return LiveTranscript(
            Transcript(""),
            start_s,
            is_final=True,
            ends_utterance=ends_utterance,
            answers_flush=answers_flush,
        )

    def _add(self, work: SpeechPart | _SilenceNoted | LiveEvent) -> None:
        # Bounded by the sound that may wait.
        self._work.put_nowait(work)

    async def _transcribe(self, part: SpeechPart) -> None:
        options = self._options
        how = UtteranceOptions(options.request, options.threshold, options.partials)
        windows = PartReport(part.start_s, self._report_transcript, partials=options.partials)
        try:
            await self._transcriber.transcribe(how, part.pieces(), windows.take)
        except CantataError as error:
            self._report(LiveFailure(error))
            await part.skip()
        windows.end(ends_utterance=part.ends_utterance, answers_flush=part.answers_flush)

    def _report_transcript(self, one: LiveTranscript) -> None:
        if one.is_final and one.transcript.text:
            words, seconds = one.transcript.words, one.transcript.seconds
            self._last_word_end_s = one.start_s + (words[-1].end_s if words else seconds)
        self._report(one)

    def _report_words_end(self) -> None:
        if self._last_word_end_s is not None:
            self._report(WordsEnded(self._last_word_end_s))
            self._last_word_end_s = None

    def _stop_timer(self) -> None:
        if self._gap is not None:
            self._gap.cancel()
            self._gap = None
