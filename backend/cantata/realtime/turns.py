"""Turns of a speaker: where speech begins and ends in a stream of sound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cantata.realtime.sound import HEARD_RATE, Heard
from cantata.realtime.vad import WINDOW, SpeechJudge

_ONSET_WINDOWS = 2
"""In a row: a click is shorter."""
_HYSTERESIS = 0.15
"""Speech goes on above this much under the threshold: no word ends in its quieter middle."""


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """Somebody speaks."""

    at: int
    """Samples of the stream before the first that is speech."""


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The speaker has been silent for as long as ends a turn."""

    at: int
    """Samples of the stream up to here, that silence included."""


Turn = SpeechStarted | SpeechStopped


class TurnEnd(Protocol):
    """Follows one stream of sound, and says whether the silence after some speech ends a turn."""

    def begin(self) -> None:
        """A turn has begun with what was heard last."""
        ...

    def hear(self, window: Heard) -> None:
        """The next `WINDOW` samples, in and outside turns."""
        ...

    async def over(self, silence: int) -> bool:
        """Whether the turn is over; asked after each of its windows.

        Args:
            silence: samples since the last speech, 0 if there is some now.
        """
        ...


class FixedSilence:
    """Ends a turn after `silence_ms`, whatever was said."""

    def __init__(self, silence_ms: int) -> None:
        self._samples = silence_ms * HEARD_RATE // 1000

    def begin(self) -> None:
        """Nothing is remembered."""

    def hear(self, window: Heard) -> None:
        """Nothing is remembered."""

    async def over(self, silence: int) -> bool:
        return silence >= self._samples


class TurnDetector:
    """Follows one stream of sound.

    Args:
        judge: of single windows.
        threshold: probability from which on a window is speech.
        end: ends a turn.
        longest_s: after which a turn ends in any case.
    """

    def __init__(
        self, judge: SpeechJudge, threshold: float, end: TurnEnd, longest_s: float
    ) -> None:
        self._judge = judge
        self._threshold = threshold
        self._end = end
        self._longest = round(longest_s * HEARD_RATE)
        self._rest: Heard = np.zeros(0, np.int16)
        """Less than a window."""
        self._judged = 0
        """Samples, in all."""
        self._since: int | None = None
        """Start of the turn in progress."""
        self._onset = 0
        """Windows of speech in a row, outside a turn."""
        self._quiet_from: int | None = None
        """Start of the silence within a turn."""

    async def feed(self, sound: Heard) -> list[Turn]:
        """What happens in these samples, in order."""
        sound = np.concatenate([self._rest, sound])
        whole = len(sound) - len(sound) % WINDOW
        self._rest = sound[whole:]
        found = [await self._hear(sound[i : i + WINDOW]) for i in range(0, whole, WINDOW)]
        return [turn for turn in found if turn is not None]

    def reset(self) -> None:
        """The sound so far belongs to no turn."""
        self._since = self._quiet_from = None
        self._onset = 0

    async def _hear(self, window: Heard) -> Turn | None:
        probability = self._judge.probability(window)
        self._end.hear(window)
        self._judged += WINDOW
        return self._begun(probability) if self._since is None else await self._ended(probability)

    def _begun(self, probability: float) -> SpeechStarted | None:
        self._onset = self._onset + 1 if probability >= self._threshold else 0
        if self._onset < _ONSET_WINDOWS:
            return None
        self.reset()
        self._since = self._judged - _ONSET_WINDOWS * WINDOW
        self._end.begin()
        return SpeechStarted(self._since)

    async def _ended(self, probability: float) -> SpeechStopped | None:
        assert self._since is not None
        if probability >= self._threshold - _HYSTERESIS:
            self._quiet_from = None
        elif self._quiet_from is None:
            self._quiet_from = self._judged - WINDOW
        silence = 0 if self._quiet_from is None else self._judged - self._quiet_from
        if self._judged - self._since < self._longest and not await self._end.over(silence):
            return None
        self.reset()
        return SpeechStopped(self._judged)
