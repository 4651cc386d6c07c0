"""Ends turns by what they sound like: soon if the speaker has finished, late if not."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cantata.realtime.smart_turn import HEARD_S
from cantata.realtime.sound import HEARD_RATE, Heard
from cantata.realtime.vad import WINDOW

_LOOK_MS = 200
"""Of silence, after which the speaker is judged: once in each pause."""
_BEFORE_MS = 500
"""Before a turn's first speech, that the judge hears too."""


Eagerness = Literal["low", "medium", "high", "auto"]
"""OpenAI's names for how soon to answer."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How soon a turn ends."""

    threshold: float
    """Probability that the speaker has finished, from which on the turn is over."""
    longest_ms: int
    """Silence that ends it in any case."""


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
        self._heard: deque[Heard] = deque(maxlen=HEARD_S * HEARD_RATE // WINDOW)
        self._looked = False
        """In the pause in progress."""

    def begin(self) -> None:
        while len(self._heard) > _samples(_BEFORE_MS) // WINDOW:
            self._heard.popleft()
        self._looked = False

    def hear(self, window: Heard) -> None:
        self._heard.append(window)

    async def over(self, silence: int) -> bool:
        if silence >= _samples(self._patience.longest_ms):
            return True
        if silence < _samples(_LOOK_MS) or self._looked:
            self._looked = self._looked and silence > 0
            return False
        self._looked = True
        return await self._finished(np.concatenate(self._heard)) >= self._patience.threshold


def _samples(ms: int) -> int:
    return ms * HEARD_RATE // 1000
