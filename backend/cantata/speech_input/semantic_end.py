"""Ends turns by how they sound: soon if the speaker has finished, otherwise late.

Smart Turn judges that, with the weights from Pipecat's package, of which nothing else is used.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cantata.contract.model.log_mel import log_mel
from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.vad import WINDOW, open_network

EXTRA = "smart-turn"
"""The extra of Cantata's package that installs the weights."""
HEARD_S = 8
"""Seconds that the network hears: the end of a longer sound; a shorter one is padded with silence
in front."""
_MEL_BINS = 80
_MIN_VARIANCE = 1e-7
_WEIGHTS = "audio/turn/smart_turn/data/smart-turn-v3*-cpu.onnx"


def weights() -> Path | None:
    """The newest installed file of weights; None if the extra is not installed."""
    found = find_spec("pipecat")
    if found is None or found.origin is None:
        return None
    return max(Path(found.origin).parent.glob(_WEIGHTS), default=None)


class SmartTurn:
    """Smart Turn 3 (github.com/pipecat-ai/smart-turn): a small speech encoder, in 8 bit, and a
    classifier of its end.

    One sound at a time, in a thread of its own: however many speakers pause, their turns take one
    core.
    """

    def __init__(self, path: Path) -> None:
        self._network: Any = open_network(path)
        self._worker = ThreadPoolExecutor(1, "smart-turn")

    async def finished(self, sound: Heard) -> float:
        """Probability that the speaker of this sound, some silence at its end, has finished."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, self.judge, sound)

    def judge(self, sound: Heard) -> float:
        """Whether a turn has ended, as `finished` says, but in this thread: up to 0.1 s of work."""
        (found,) = self._network.run(None, {"input_features": features(sound)[None]})
        return float(found.reshape(-1)[0])

    async def close(self) -> None:
        """Wait for the judgement in progress and drop those that wait."""
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)


def features(sound: Heard) -> NDArray[np.float32]:
    """The network's input for a sound: [`_MEL_BINS`, 100 x `HEARD_S`], of samples that are scaled
    to mean 0 and variance 1."""
    received = np.zeros(HEARD_S * HEARD_RATE, np.float32)
    last = sound[-len(received) :].astype(np.float32) / np.float32(32768)
    received[len(received) - len(last) :] = last
    sound_64 = received.astype(np.float64)
    scaled = (sound_64 - sound_64.mean()) / np.sqrt(sound_64.var() + _MIN_VARIANCE)
    return log_mel(scaled, _MEL_BINS)


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
    """Implements `turns.TurnEnd`. `finished`: probability that whoever made a sound has
    finished."""

    def __init__(self, finished: Callable[[Heard], Awaitable[float]], patience: Patience) -> None:
        self._finished = finished
        self._patience = patience
        self._windows: deque[Heard] = deque(maxlen=HEARD_S * HEARD_RATE // WINDOW)
        self._looked = False
        """Whether the pause in progress has been judged."""

    def begin(self) -> None:
        while len(self._windows) > _to_samples(_BEFORE_MS) // WINDOW:
            self._windows.popleft()
        self._looked = False

    def hear(self, window: Heard) -> None:
        self._windows.append(window)

    async def over(self, silence: int) -> bool:
        if silence >= _to_samples(self._patience.longest_ms):
            return True
        if silence < _to_samples(_LOOK_MS) or self._looked:
            self._looked = self._looked and silence > 0
            return False
        self._looked = True
        return await self._finished(np.concatenate(self._windows)) >= self._patience.threshold


def _to_samples(ms: int) -> int:
    return ms * HEARD_RATE // 1000
