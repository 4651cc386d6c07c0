"""Recognizes a server's own answers in what a microphone hears.

A loudspeaker's sound comes back later, quieter and shaped by the room, but it is the sound that was
sent: a short filter of that explains it. Whoever speaks at the same time is not explained, and is
heard. Nothing is removed from the sound, so that no word of a speaker is damaged; windows that are
echo alone just do not count as speech.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
import soxr
from numpy.typing import NDArray

from cantata.audio.playback import Playback
from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.vad import WINDOW, SpeechJudge

_Signal = NDArray[np.float32]
Clock = Callable[[], float]

_UNEVEN_S = 0.06
"""A packet that leaves later than this after the one before follows a pause."""
_KEPT_S = 6.0
"""Sound that was played longer ago is forgotten; echoes are sooner."""
_LATEST_S, _EARLIEST_S = 2.5, -1.5
"""Delays between sending and hearing that are looked for: the network's and the player's buffer;
and, in a microphone's sound that comes in long pieces, their length."""
_FITTED = 16 * WINDOW
"""Samples to which a filter is fitted: half a second."""
_TAPS = 512
"""Of the filter: 32 ms of the room."""
_BEFORE = 32
"""Of these, before the strongest."""
_EXPLAINED = 0.4
"""Part of a window's power that must be explained. An echo is explained to more than four fifths,
and a speaker over it hides it."""
_JUDGED = 6 * WINDOW
"""Samples of which that must hold, where it does not of the last window."""
_PLACES = np.abs(np.subtract.outer(np.arange(_TAPS), np.arange(_TAPS)))
"""Of a Toeplitz matrix's values in its first row."""
_WHITENED = (0.3, 0.8)
"""How much spectra are flattened before they are compared: vowels alone look alike at many delays,
but in the first tenth of a second the rest is noise."""
_MAX_WAIT = 32
"""Windows until the delay is looked for again: twice as many after each failure, up to this, since
an attempt takes some milliseconds."""
_SLACK_S = 3.0
"""A microphone's clock and this machine's may differ by so much before they are matched anew."""
_DOUBTFUL = 0.2
"""Probability of speech below which it does not matter whose it is."""


class SentSound:
    """What a listener hears of the answers, and when.

    Args:
        rate: Hz of the answers.
        clock: seconds, such as the event loop's.
    """

    def __init__(self, rate: int, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._resampler: soxr.ResampleStream | None = None
        """Made for the first sound: a model that only writes has no rate."""
        self._playback = Playback()
        self._pieces: deque[tuple[int, _Signal]] = deque()
        """Samples at `HEARD_RATE`, and the position on the clock of the first, ascending."""

    def add(self, sound: NDArray[np.float32]) -> None:
        """Add [N, C] samples that were sent now and are played after those before."""
        mono = sound.mean(axis=1, dtype=np.float32)
        now = self._clock()
        self._playback.take(now, len(mono) / self._rate)
        if self._resampler is None:
            self._resampler = soxr.ResampleStream(
                self._rate, HEARD_RATE, 1, dtype="float32", quality="LQ"
            )
        heard = self._resampler.resample_chunk(mono)
        if len(heard):
            # One after the other, not by rounded times: a jump of a sample would need a new filter.
            start = round(now * HEARD_RATE)
            if self._pieces:
                before, last = self._pieces[-1]
                end = before + len(last)
                start = end if start < end + _UNEVEN_S * HEARD_RATE else start
            self._pieces.append((start, heard))
        while self._pieces and self._pieces[0][0] < (now - _KEPT_S) * HEARD_RATE:
            self._pieces.popleft()

    def cut(self) -> None:
        """The listener plays no more of it."""
        end = round(self._clock() * HEARD_RATE)
        while self._pieces and self._pieces[-1][0] >= end:
            self._pieces.pop()
        if self._pieces:
            start, last = self._pieces[-1]
            self._pieces[-1] = (start, last[: max(0, end - start)])
        self._playback = Playback()
        self._resampler = None

    def read(self, start: int, count: int) -> _Signal:
        """The samples at these positions of the clock; silence where nothing was played."""
        found = np.zeros(count, np.float32)
        for at, piece in self._pieces:
            first, end = max(at, start), min(at + len(piece), start + count)
            if first < end:
                found[first - start : end - start] = piece[first - at : end - at]
        return found

    def is_heard(self) -> bool:
        """Whether some may be heard at this moment, however late."""
        end = self._playback.playout_deadline_s
        return end is not None and self._clock() < end + _LATEST_S


class EchoFilter:
    """Follows one microphone."""

    def __init__(self, sent: SentSound, clock: Clock) -> None:
        self._sent = sent
        self._clock = clock
        self._heard = np.zeros(_FITTED, np.float32)
        """The last samples of the microphone."""
        self._end = 0
        """Position of the microphone's last sample on the clock, as far as it is known."""
        self._lag: int | None = None
        """Samples from being played to being heard, less `_BEFORE`; None: not known yet."""
        self._taps = np.zeros(_TAPS, np.float32)
        self._wait, self._waited = 1, 0
        """Windows from one attempt to find the delay to the next, and since the last."""

    def hear(self, window: Heard) -> None:
        """Take the next `WINDOW` samples of the microphone."""
        self._heard = np.concatenate([self._heard[WINDOW:], window / np.float32(32768)])
        self._end += WINDOW
        self._waited += 1
        if self._waited > _MAX_WAIT:
            self._wait = 1
        now = round(self._clock() * HEARD_RATE)
        if abs(now - self._end) > _SLACK_S * HEARD_RATE:
            self._end, self._lag = now, None

    def explains(self) -> bool:
        """Whether the last window is an echo."""
        if not self._sent.is_heard():
            return False
        if self._is_explained():
            return True
        if self._waited < self._wait:
            return False
        if self._learn() and self._is_explained():
            self._wait, self._waited = 1, 0
            return True
        self._wait, self._waited = min(2 * self._wait, _MAX_WAIT), 0
        return False

    def _is_explained(self) -> bool:
        # A pause in an echo is more noise than echo; with what came before it is explained. Who
        # begins to speak is louder than both.
        return any(self._measure_explained_part(count) >= _EXPLAINED for count in (WINDOW, _JUDGED))

    def _measure_explained_part(self, count: int) -> float:
        """Part of the last samples' power that the filter explains."""
        if self._lag is None:
            return 0.0
        heard = self._heard[-count:]
        sent = self._sent.read(self._end - count - self._lag - _TAPS + 1, count + _TAPS - 1)
        rest = heard - np.convolve(sent, self._taps, "valid")
        power = float(np.dot(heard, heard))
        return 0.0 if power == 0.0 else 1.0 - float(np.dot(rest, rest)) / power

    def _learn(self) -> bool:
        """Find the delay and the filter that explain the last half second best; whether they do."""
        best, before = _EXPLAINED, (self._lag, self._taps)
        found = before
        for lag in self._find_lags():
            self._lag = lag - _BEFORE
            self._taps = self._fit(self._lag)
            part = self._measure_explained_part(_FITTED)
            if part >= best:
                best, found = part, (self._lag, self._taps)
        self._lag, self._taps = found
        return found is not before

    def _fit(self, lag: int) -> _Signal:
        """The filter that explains the last half second best after this delay."""
        sent = self._sent.read(self._end - _FITTED - lag - _TAPS + 1, _FITTED + _TAPS - 1)
        size = 2 * _FITTED
        spectrum = np.fft.rfft(sent, size)
        powers = np.fft.irfft(np.abs(spectrum) ** 2, size)[:_TAPS]
        products = np.fft.irfft(np.conj(spectrum) * np.fft.rfft(self._heard, size), size)
        # The first tap's samples begin `_TAPS` - 1 after the last one's.
        target = np.roll(products, _TAPS - 1)[:_TAPS]
        matrix = powers[_PLACES]
        matrix[np.diag_indices(_TAPS)] += 1e-3 * powers[0] + 1e-9
        return np.linalg.solve(matrix, target).astype(np.float32)

    def _find_lags(self) -> list[int]:
        """The delays at which the last half second is most like what was sent."""
        latest, earliest = (round(s * HEARD_RATE) for s in (_LATEST_S, _EARLIEST_S))
        first = self._end - _FITTED - latest
        sent = self._sent.read(first, _FITTED + latest - earliest)
        if not sent.any() or not self._heard.any():
            return []
        size = 1 << (len(sent) + _FITTED - 1).bit_length()
        cross = np.fft.rfft(sent, size) * np.conj(np.fft.rfft(self._heard, size))
        power = np.abs(cross) + 1e-9
        likenesses = (np.fft.irfft(cross / power**part, size) for part in _WHITENED)
        places = (np.argmax(np.abs(one[: latest - earliest + 1])) for one in likenesses)
        return sorted({latest - int(place) for place in places})


class EchoAwareJudge:
    """Implements `vad.SpeechJudge`: an answer that comes back is no speech of the user."""

    def __init__(self, judge: SpeechJudge, echo: EchoFilter) -> None:
        self._judge = judge
        self._echo = echo

    def compute_probability(self, window: Heard) -> float:
        self._echo.hear(window)
        found = self._judge.compute_probability(window)
        return 0.0 if found >= _DOUBTFUL and self._echo.explains() else found
