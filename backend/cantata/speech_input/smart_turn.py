"""Judges by sound whether a speaker has finished: Smart Turn, with the weights from Pipecat's
package. Nothing else of that package is used."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.contract.model.log_mel import log_mel
from cantata.speech_input.onnx import open_network
from cantata.speech_input.sound import HEARD_RATE, Heard

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

    Args:
        path: of the weights.
    """

    def __init__(self, path: Path) -> None:
        self._network: Any = open_network(path)
        self._worker = ThreadPoolExecutor(1, "smart-turn")

    async def finished(self, sound: Heard) -> float:
        """Probability that the speaker of this sound, some silence at its end, has finished."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, self.judge, sound)

    def judge(self, sound: Heard) -> float:
        """As `finished`, but in this thread: up to 0.1 s of work."""
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
