"""How loud a speaker usually is, so that voices far behind are told from the speaker's."""

from __future__ import annotations

import numpy as np

from cantata.speech_input.sound import Heard

_DISTANCE_DB = 12.0
"""Speech this much below the usual level comes from elsewhere: people seldom vary by more, and
other people, televisions and echoes are seldom louder."""
_MEMORY_WINDOWS = 300
"""About ten seconds of speech make up the usual level."""
_SILENT_DB = -100.0


class SpeechLevel:
    """The level of one session's speaker."""

    def __init__(self) -> None:
        self._power = 0.0
        self._windows = 0

    def learn(self, window: Heard) -> None:
        self._windows = min(self._windows + 1, _MEMORY_WINDOWS)
        self._power += (measure_power(window) - self._power) / self._windows

    def is_near(self, window: Heard) -> bool:
        """Whether speech in this window may be the speaker's; yes, while none is known."""
        if not self._windows:
            return True
        return _to_db(measure_power(window)) >= _to_db(self._power) - _DISTANCE_DB


def measure_power(window: Heard) -> float:
    """Mean square of samples, of full scale."""
    return float(np.mean(np.square(window, dtype=np.float64))) / 2**30


def _to_db(power: float) -> float:
    return _SILENT_DB if power <= 1e-10 else float(10 * np.log10(power))
