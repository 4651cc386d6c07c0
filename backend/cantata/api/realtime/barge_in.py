"""Speech over an answer, which is held back until it proves to be an interruption.

Clients stop playing at `speech_started`, so nothing of it is told before that is known. Where the
client plays the answer, it goes on as if nobody had spoken. Where the server plays it, it pauses
while somebody speaks, and resumes if that was no interruption.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from cantata.api.realtime.input_audio import TurnEnded, TurnStarted
from cantata.contract.data.transcripts import Transcript
from cantata.speech_input.agreed_words import WordDelta
from cantata.speech_input.interruptions import SpeechEvidence, is_interruption
from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.speech_level import SpeechLevel
from cantata.speech_input.vad import WINDOW

_QUIET_WINDOWS = 10
"""A third of a second without speech, after which an answer comes back before the turn is over."""
_WORDS_S = 10.0
"""Time after its end for the words of such speech; then its length decides."""


class TurnListener(Protocol):
    """Takes turns that are no longer held back: what a client is told of the user's speech."""

    def on_speech_started(self, event: TurnStarted) -> None:
        """Called when a turn begins; one that was held back may have begun some time ago."""
        ...

    def on_speech_stopped(self, event: TurnEnded) -> None:
        """Called when a turn that has begun is over."""
        ...

    def on_transcript_delta(self, item_id: str, delta: WordDelta) -> None:
        """Called with more words of a turn that has begun."""
        ...

    def pause_answer(self) -> None:
        """Called, often, while somebody speaks who may be interrupting."""
        ...

    def resume_answer(self) -> None:
        """Called when nobody speaks any more, or it is decided."""
        ...

    def is_answer_playing(self) -> bool:
        """Whether an answer is being played to the user, in a pause of it, too."""
        ...


@dataclass(slots=True)
class _HeldSpeech:
    """Speech of which nothing has been told."""

    started: TurnStarted | None = None
    evidence: SpeechEvidence = field(default_factory=SpeechEvidence)
    deltas: list[WordDelta] = field(default_factory=list)
    ended: TurnEnded | None = None
    outlasted: bool = False
    """Whether the answer was over when the speech was."""
    limit: asyncio.TimerHandle | None = None
    """Of the wait for its words."""


class BargeIn:
    """Implements `input_audio.SpeechObserver`; passes turns on to its listener, in order, or holds
    them back."""

    def __init__(self, listener: TurnListener) -> None:
        self._listener = listener
        self.holds = False
        """Whether speech over an answer is held back at all."""
        self._level = SpeechLevel()
        self._held: deque[_HeldSpeech] = deque()
        """The last one may be going on."""
        self._is_held = False
        """Whether the turn in progress is."""
        self._quiet_windows = 0
        """Since somebody near spoke in it."""

    def start_tracking(self) -> Callable[[Transcript], None] | None:
        # Behind one that is not decided, too: turns are told in order.
        self._is_held = bool(self._held) or (self.holds and self._listener.is_answer_playing())
        if not self._is_held:
            return None
        held = _HeldSpeech()
        self._held.append(held)

        def take(transcript: Transcript) -> None:
            held.evidence.transcript = transcript
            self.review()

        return take

    def track_window(self, window: Heard, *, is_speech: bool) -> None:
        if not self._is_held:
            if is_speech:
                self._level.learn(window)
            return
        evidence, is_near = self._held[-1].evidence, is_speech and self._level.is_near(window)
        evidence.add_window(WINDOW / HEARD_RATE, is_speech=is_speech, is_near=is_near)
        self._quiet_windows = 0 if is_near else self._quiet_windows + 1
        if is_near:
            self._listener.pause_answer()
        elif self._quiet_windows == _QUIET_WINDOWS:
            self._listener.resume_answer()

    def drop_turn(self) -> None:
        if self._is_held:
            self._held.pop()
            self._is_held = False
            self._listener.resume_answer()

    def on_turn_started(self, event: TurnStarted) -> None:
        """Pass on that a turn has begun, or hold it back."""
        if not self._is_held:
            self._listener.on_speech_started(event)
            return
        self._held[-1].started = event
        self._held[-1].evidence.has_recognizer = event.words is not None

    def on_turn_ended(self, event: TurnEnded) -> None:
        """Pass on that the turn in progress is over, or hold it back."""
        if not self._is_held:
            self._listener.on_speech_stopped(event)
            return
        self._is_held = False
        held = self._held[-1]
        held.ended = event
        held.outlasted = not self._listener.is_answer_playing()
        if event.feed.words is not None:
            held.limit = asyncio.get_running_loop().call_later(_WORDS_S, self.review)
            event.feed.words.add_done_callback(lambda _: self.review())
        self.review()

    def on_transcript_delta(self, item_id: str, delta: WordDelta) -> None:
        """Pass on more words of a turn, or hold them back."""
        for held in self._held:
            if held.started is not None and held.started.item_id == item_id:
                held.deltas.append(delta)
                return
        self._listener.on_transcript_delta(item_id, delta)

    def accept(self) -> None:
        """Pass on all that is held back: the client says that it is meant."""
        while self._held:
            self._release(self._take_first())

    def review(self) -> None:
        """Pass on, or forget, what is decided. Turns are told in order."""
        while self._held and (verdict := self._decide(self._held[0])) is not None:
            held = self._take_first()
            if verdict:
                self._release(held)

    def stop(self) -> None:
        """Forget everything: the connection is over."""
        while self._held:
            self._take_first()
        self._is_held = False

    def _take_first(self) -> _HeldSpeech:
        held = self._held.popleft()
        if held.limit is not None:
            held.limit.cancel()
        if not self._held:
            self._listener.resume_answer()
        return held

    def _decide(self, held: _HeldSpeech) -> bool | None:
        """Whether the speech is meant; None: not known yet."""
        if held.started is None:
            return None
        evidence, ended = held.evidence, held.ended
        words = None if ended is None else ended.feed.words
        evidence.is_complete = words is not None and words.done()
        if is_interruption(evidence):
            return True
        is_enough = evidence.is_near
        if ended is None:
            # Who speaks on when the answer is over has taken the turn.
            return True if is_enough and not self._listener.is_answer_playing() else None
        if held.outlasted:
            return is_enough
        if words is None or (words.done() and not words.cancelled() and not words.exception()):
            return False
        loop = asyncio.get_running_loop()
        if not words.done() and held.limit is not None and loop.time() < held.limit.when():
            return None
        return is_interruption(replace(evidence, transcript=None, has_recognizer=False))

    def _release(self, held: _HeldSpeech) -> None:
        assert held.started is not None
        if held.ended is None:
            self._is_held = False
        self._listener.on_speech_started(held.started)
        for delta in held.deltas:
            self._listener.on_transcript_delta(held.started.item_id, delta)
        if held.ended is not None:
            self._listener.on_speech_stopped(held.ended)
