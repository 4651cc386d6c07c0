"""Ends turns by how they sound: soon if the speaker has finished, otherwise late."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cantata.speech_input.smart_turn import HEARD_S
from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.vad import WINDOW

_LOOK_MS = 200
"""Silence in ms after which the speaker is judged, once in each pause."""
_BEFORE_MS = 500
"""Sound in ms before a turn's first speech that the judge also hears."""


Eagerness = Literal["low", "medium", "high", "auto"]
"""OpenAI's names for how soon to answer."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How soon a turn ends."""

    threshold: float
    """The turn is over from this probability that the speaker has finished."""
    longest_ms: int
    """Silence in ms that ends the turn in any case."""


_BALANCED = Patience(0.5, 4000)
PATIENCE: dict[Eagerness, Patience] = {
    "low": Patience(0.8, 8000),
    "medium": _BALANCED,
    "high": Patience(0.3, 2000),
    "auto": _BALANCED,
}
"""The waits are OpenAI's, "auto" is its "medium"; the thresholds are ours."""


class SemanticEnd:
    """Implements `turns.TurnEnd`.

    Args:
        finished: probability that whoever made a sound has finished.
        patience: how soon a turn ends.
    """

    def __init__(self, finished: Callable[[Heard], Awaitable[float]], patience: Patience) -> None:
        self._finished = finished
        self._patience = patience
        self._windows: deque[Heard] = deque(maxlen=HEARD_S * HEARD_RATE // WINDOW)
        self._looked = False
        """Whether the pause in progress has been judged."""

    def begin(self) -> None:
        while len(self._windows) > _samples(_BEFORE_MS) // WINDOW:
            self._windows.popleft()
        self._looked = False

    def hear(self, window: Heard) -> None:
        self._windows.append(window)

    async def over(self, silence: int) -> bool:
        if silence >= _samples(self._patience.longest_ms):
            return True
        if silence < _samples(_LOOK_MS) or self._looked:
            self._looked = self._looked and silence > 0
            return False
        self._looked = True
        return await self._finished(np.concatenate(self._windows)) >= self._patience.threshold


def _samples(ms: int) -> int:
    return ms * HEARD_RATE // 1000
