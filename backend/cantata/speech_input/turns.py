"""Detects turns: where speech begins and ends in a stream of sound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.vad import WINDOW, SpeechJudge

ONSET_WINDOWS = 2
"""Windows of speech in a row that begin a turn; a click is shorter."""
HYSTERESIS = 0.15
"""Speech continues down to this much below the threshold, so that no word ends in its quieter
middle."""


@dataclass(frozen=True, slots=True)
class SpeechOnset:
    at: int
    """Samples of the stream before the first one of speech."""


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The speaker has been silent for long enough to end the turn."""

    at: int
    """Samples of the stream up to here, including that silence."""


Turn = SpeechOnset | SpeechStopped


class TurnEnd(Protocol):
    """Follows one stream of sound, and decides whether the silence after speech ends a turn."""

    def begin(self) -> None:
        """Called when a turn begins with the last window."""
        ...

    def hear(self, window: Heard) -> None:
        """Take the next `WINDOW` samples, inside and outside turns."""
        ...

    async def over(self, silence: int) -> bool:
        """Whether the turn is over; called after each of its windows. `silence`: samples since the
        last speech, 0 if there is some now."""
        ...


class FixedSilence:
    """Ends a turn after `silence_ms`, whatever was said."""

    def __init__(self, silence_ms: int) -> None:
        self._samples = silence_ms * HEARD_RATE // 1000

    def begin(self) -> None:
        """Nothing to do: a fixed silence has no state."""

    def hear(self, window: Heard) -> None:
        """Nothing to do: a fixed silence has no state."""

    async def over(self, silence: int) -> bool:
        return silence >= self._samples


class TurnDetector:
    """Follows one stream of sound.

    Args:
        threshold: probability from which on a window is speech.
        longest_s: after which a turn ends in any case.
    """

    def __init__(
        self, judge: SpeechJudge, threshold: float, end: TurnEnd, longest_s: float
    ) -> None:
        self._judge = judge
        self._threshold = threshold
        self._end = end
        self._longest = round(longest_s * HEARD_RATE)
        self.probability = 0.0
        """Probability of speech in the last window that was judged."""
        self._rest: Heard = np.zeros(0, np.int16)
        """Samples that do not fill a window yet."""
        self._judged = 0
        """Number of samples judged so far."""
        self._since: int | None = None
        """Where the turn in progress begins."""
        self._onset = 0
        """Windows of speech in a row, while no turn is in progress."""
        self._quiet_from: int | None = None
        """Where the silence within the turn begins."""

    async def feed(self, sound: Heard) -> list[Turn]:
        """The beginnings and ends of turns in these samples, in order."""
        sound = np.concatenate([self._rest, sound])
        whole = len(sound) - len(sound) % WINDOW
        self._rest = sound[whole:]
        found = [await self._hear(sound[i : i + WINDOW]) for i in range(0, whole, WINDOW)]
        return [turn for turn in found if turn is not None]

    def reset(self) -> None:
        """Forget the sound so far: it belongs to no turn."""
        self._since = self._quiet_from = None
        self._onset = 0

    async def _hear(self, window: Heard) -> Turn | None:
        self.probability = probability = self._judge.compute_probability(window)
        self._end.hear(window)
        self._judged += WINDOW
        return (
            self._check_start(probability)
            if self._since is None
            else await self._check_end(probability)
        )

    def _check_start(self, probability: float) -> SpeechOnset | None:
        self._onset = self._onset + 1 if probability >= self._threshold else 0
        if self._onset < ONSET_WINDOWS:
            return None
        self.reset()
        self._since = self._judged - ONSET_WINDOWS * WINDOW
        self._end.begin()
        return SpeechOnset(self._since)

    async def _check_end(self, probability: float) -> SpeechStopped | None:
        assert self._since is not None
        if probability >= self._threshold - HYSTERESIS:
            self._quiet_from = None
        elif self._quiet_from is None:
            self._quiet_from = self._judged - WINDOW
        silence = 0 if self._quiet_from is None else self._judged - self._quiet_from
        if self._judged - self._since < self._longest and not await self._end.over(silence):
            return None
        self.reset()
        return SpeechStopped(self._judged)
