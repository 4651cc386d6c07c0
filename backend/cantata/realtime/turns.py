"""Turns of a speaker: where speech begins and ends in a stream of sound."""

from __future__ import annotations

from collections.abc import Iterator
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


class TurnDetector(Protocol):
    """Follows one stream of sound. Detectors that know more than silence have this shape too."""

    def feed(self, sound: Heard) -> Iterator[Turn]:
        """What happens in these samples, in order. Sound is judged as the iterator advances."""
        ...

    def reset(self) -> None:
        """The sound so far belongs to no turn."""
        ...


class SilenceDetector:
    """A turn ends with a silence of a fixed length.

    Args:
        judge: of single windows.
        threshold: probability from which on a window is speech.
        silence_ms: that ends a turn.
        longest_s: after which a turn ends in any case.
    """

    def __init__(
        self, judge: SpeechJudge, threshold: float, silence_ms: int, longest_s: float
    ) -> None:
        self._judge = judge
        self._threshold = threshold
        self._silence = silence_ms * HEARD_RATE // 1000
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

    def feed(self, sound: Heard) -> Iterator[Turn]:
        sound = np.concatenate([self._rest, sound])
        whole = len(sound) - len(sound) % WINDOW
        self._rest = sound[whole:]
        for start in range(0, whole, WINDOW):
            probability = self._judge.probability(sound[start : start + WINDOW])
            self._judged += WINDOW
            turn = self._begun(probability) if self._since is None else self._ended(probability)
            if turn is not None:
                yield turn

    def reset(self) -> None:
        self._since = self._quiet_from = None
        self._onset = 0

    def _begun(self, probability: float) -> SpeechStarted | None:
        self._onset = self._onset + 1 if probability >= self._threshold else 0
        if self._onset < _ONSET_WINDOWS:
            return None
        self.reset()
        self._since = self._judged - _ONSET_WINDOWS * WINDOW
        return SpeechStarted(self._since)

    def _ended(self, probability: float) -> SpeechStopped | None:
        assert self._since is not None
        if probability >= self._threshold - _HYSTERESIS:
            self._quiet_from = None
        elif self._quiet_from is None:
            self._quiet_from = self._judged - WINDOW
        silent = self._quiet_from is not None and self._judged - self._quiet_from >= self._silence
        if not silent and self._judged - self._since < self._longest:
            return None
        self.reset()
        return SpeechStopped(self._judged)
