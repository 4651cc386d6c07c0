"""Cuts recordings of any length into segments of speech that a recognizer takes as windows.

What is not speech by Silero's judgement is left out: a recognizer makes up words for it. Cuts are
made in pauses; in speech without any, where speech is least likely.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cantata.audio.pcm import to_s16
from cantata.contract.model.recognizer import Sound
from cantata.speech_input.sound import HEARD_RATE
from cantata.speech_input.turns import HYSTERESIS
from cantata.speech_input.vad import WINDOW, SpeechJudge

_WINDOW_S = WINDOW / HEARD_RATE
_FORCED_CUT_SHARE = 0.4
"""Part at the end of a segment of the greatest length in which it is cut."""
_SMOOTHED_WINDOWS = 5
"""A forced cut is made where this many windows are least likely speech."""


@dataclass(frozen=True, slots=True)
class SegmenterOptions:
    """Where a recording is cut."""

    max_s: float
    """Seconds of the longest segment."""
    threshold: float = 0.35
    """Least probability of speech. WHY less than for turns: by telephone, Silero is unsure of first
    words, and a recognizer hears little in a sound that it takes for speech by mistake."""
    lead_s: float = 1.0
    """Sound kept before the first speech of a segment."""
    padding_s: float = 0.3
    """Sound kept after its last."""
    pauses: tuple[tuple[float, float], ...] = ((0.0, 1.5), (4.0, 0.6), (10.0, 0.32))
    """Segments at least so many seconds long end at a pause of so many seconds: short ones are
    joined, because a recognizer understands words better among others."""

    def pause_after(self, length_s: float) -> float:
        """Seconds of the pause that ends a segment of this length."""
        return min(pause_s for from_s, pause_s in self.pauses if length_s >= from_s)


@dataclass(frozen=True, slots=True)
class SpeechSegment:
    """A part of a recording in which somebody speaks."""

    start: int
    """Samples of the recording before it."""
    samples: Sound
    lead_s: float = 0.0
    """Seconds of it before the first likely speech."""

    @property
    def start_s(self) -> float:
        """Seconds of the recording before it."""
        return self.start / HEARD_RATE


class SpeechSegmenter:
    """Follows one recording. `judge`: of single windows; new for each recording."""

    def __init__(self, judge: SpeechJudge, options: SegmenterOptions) -> None:
        self._judge = judge
        self._options = options
        self._padding = max(1, round(options.padding_s / _WINDOW_S))
        self._max_windows = int(options.max_s / _WINDOW_S)
        self._rest: Sound = np.zeros(0, np.float32)
        """Samples that do not fill a window yet."""
        self._judged = 0
        self._before: deque[Sound] = deque(maxlen=round(options.lead_s / _WINDOW_S))
        """The last windows outside segments."""
        self._windows: list[Sound] = []
        """Windows of the segment in progress; empty: there is none."""
        self._probabilities: list[float] = []
        self._lead = 0
        """Windows of it before its first speech."""
        self._quiet = 0
        """Windows without speech at the segment's end."""

    @property
    def judged_s(self) -> float:
        """Seconds of the recording so far."""
        return self._judged * _WINDOW_S

    def feed(self, sound: Sound) -> list[SpeechSegment]:
        """The segments that end in these samples, in order."""
        sound = np.concatenate([self._rest, sound])
        whole = len(sound) - len(sound) % WINDOW
        self._rest = sound[whole:]
        segments = [self._take(sound[start : start + WINDOW]) for start in range(0, whole, WINDOW)]
        return [segment for segment in segments if segment is not None]

    def end(self) -> list[SpeechSegment]:
        """The segment in progress, if any: the recording is over."""
        found = []
        if len(self._rest):
            found = self.feed(np.zeros(WINDOW - len(self._rest), np.float32))
        if self._windows:
            found.append(self._close(max(0, self._quiet - self._padding)))
        return found

    def _take(self, window: Sound) -> SpeechSegment | None:
        probability = self._judge.compute_probability(to_s16(window))
        self._judged += 1
        if not self._windows:
            self._begin(window, probability)
            return None
        self._windows.append(window)
        self._probabilities.append(probability)
        is_speech = probability >= self._options.threshold - HYSTERESIS
        self._quiet = 0 if is_speech else self._quiet + 1
        length_s = (len(self._windows) - self._quiet) * _WINDOW_S
        if self._quiet * _WINDOW_S >= self._options.pause_after(length_s):
            return self._close(max(0, self._quiet - self._padding))
        if len(self._windows) >= self._max_windows:
            return self._cut()
        return None

    def _begin(self, window: Sound, probability: float) -> None:
        if probability < self._options.threshold:
            self._before.append(window)
            return
        self._windows = [*self._before, window]
        self._lead = len(self._before)
        self._probabilities = [*[0.0] * self._lead, probability]
        self._before.clear()
        self._quiet = 0

    def _close(self, spare: int) -> SpeechSegment:
        """End the segment; its last `spare` windows are not part of it."""
        segment = self._make(len(self._windows) - spare)
        self._before.extend(self._windows[len(self._windows) - spare :])
        self._windows, self._probabilities, self._quiet = [], [], 0
        return segment

    def _cut(self) -> SpeechSegment:
        """End a segment that has become too long; what follows the cut begins the next one."""
        place = find_quietest(self._probabilities)
        segment = self._make(place)
        self._windows, self._probabilities = self._windows[place:], self._probabilities[place:]
        self._lead = 0
        self._quiet = min(self._quiet, len(self._windows))
        return segment

    def _make(self, windows: int) -> SpeechSegment:
        start = (self._judged - len(self._windows)) * WINDOW
        samples = np.concatenate(self._windows[:windows])
        return SpeechSegment(start, samples, self._lead * _WINDOW_S)


def find_quietest(probabilities: Sequence[float]) -> int:
    """Where to cut windows of speech that has no pause: the number of the first one after the cut,
    near the end. `probabilities`: of speech, of each window."""
    first = round(len(probabilities) * (1 - _FORCED_CUT_SHARE))
    kernel = np.ones(_SMOOTHED_WINDOWS) / _SMOOTHED_WINDOWS
    likely = np.convolve(probabilities[first:], kernel, mode="valid")
    return first + int(np.argmin(likely)) + _SMOOTHED_WINDOWS // 2
