"""Figures of one voice: what the judges say of its sentences, and how its pitch moves.

Letters: N samples, W windows of 40 ms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import jiwer
import numpy as np
import soxr
from numpy.typing import NDArray

from cantata_bench.voice_quality.judges import RATE_HZ, DistillMos, DnsMos, Sound, Whisper

PEAK = 0.7
_HOP, _WINDOW = 160, 640
_MIN_HZ, _MAX_HZ = 65, 400
_VOICED = 0.6
"""Normalized autocorrelation at the period."""
_LOUD_DB = -30
"""Against the loudest window; quieter ones have no pitch."""
_MAX_SEMITONES = 9
"""Semitones."""
_END_WINDOWS, _HIGH_WINDOWS = 30, 8
"""The last voiced windows of a sentence, 0.3 s, and the highest of them, which count: after a rise
the voice often falls again."""
SPELLINGS = {"grey": "gray", "colour": "color", "okay": "ok", "mister": "mr", "doctor": "dr"}


@dataclass(frozen=True, slots=True)
class EvalSentence:
    """A sentence to be read."""

    kind: str
    """`statement`, `yes-no` (a question that may be answered so), `question` or `other`."""
    text: str


@dataclass(frozen=True, slots=True)
class EvalResult:
    """One sentence as a voice reads it."""

    kind: str
    mos: float
    """DistillMOS."""
    overall: float
    """DNSMOS OVRL."""
    words: int
    errors: int
    """Wrong, missing and added words; no more than `words`."""
    heard: str
    spread: float
    """Standard deviation of the pitch, in semitones."""
    ending: float
    """The highest pitch of the last 0.3 s of voice against the median, in semitones."""
    seconds: float


@dataclass(frozen=True, slots=True)
class VoiceMeans:
    """Means over the sentences of one voice."""

    model: str
    voice: str
    sentences: int
    mos: float
    overall: float
    wer: float
    """Percent."""
    spread: float
    rise: float
    """By how many semitones questions for yes or no end above statements, each against its own
    median."""


class JudgePanel:
    """All judges, loaded once."""

    def __init__(self) -> None:
        self._mos, self._overall, self._whisper = DistillMos(), DnsMos(), Whisper()

    def judge(
        self, sentence: EvalSentence, samples: NDArray[np.float32], rate_hz: int
    ) -> EvalResult:
        """Judge mono sound; its level does not count."""
        sound = prepare(samples, rate_hz)
        heard = self._whisper.transcribe(sound)
        words, errors = count_errors(sentence.text, heard)
        pitch = track_pitch(sound)
        return EvalResult(
            kind=sentence.kind,
            mos=self._mos.rate(sound),
            overall=self._overall.rate(sound),
            words=words,
            errors=errors,
            heard=heard,
            spread=float(pitch.std()) if len(pitch) else 0.0,
            ending=measure_ending(pitch),
            seconds=len(samples) / rate_hz,
        )


def summarize(model: str, voice: str, judged: Sequence[EvalResult]) -> VoiceMeans:
    """The means; there is at least one sentence."""
    return VoiceMeans(
        model=model,
        voice=voice,
        sentences=len(judged),
        mos=float(np.mean([one.mos for one in judged])),
        overall=float(np.mean([one.overall for one in judged])),
        wer=100 * sum(one.errors for one in judged) / sum(one.words for one in judged),
        spread=float(np.mean([one.spread for one in judged])),
        rise=_average_ending(judged, "yes-no") - _average_ending(judged, "statement"),
    )


def _average_ending(judged: Sequence[EvalResult], kind: str) -> float:
    endings = [one.ending for one in judged if one.kind == kind]
    return float(np.mean(endings)) if endings else 0.0


def prepare(samples: NDArray[np.float32], rate_hz: int) -> Sound:
    """As the judges hear it: 16 kHz, with one peak for all voices."""
    sound = soxr.resample(samples, rate_hz, RATE_HZ).astype(np.float32)
    peak = max(float(np.abs(sound).max(initial=0.0)), 1e-4)
    scaled: Sound = sound * np.float32(PEAK / peak)
    return scaled


def count_errors(text: str, heard: str) -> tuple[int, int]:
    """Words in the text, and how many a listener got wrong: at most all of them, since a recognizer
    that repeats itself says nothing of the voice."""
    wanted, got = _strip_words(text), _strip_words(heard)
    words = len(wanted.split())
    if not got:
        return words, words
    return words, min(round(words * float(jiwer.wer([wanted], [got]))), words)


def _strip_words(text: str) -> str:
    """Lower-case words without punctuation; variants of a spelling are one word."""
    words = re.sub(r"[^a-z ]", " ", text.lower().replace("'", "").replace("-", " ")).split()
    return " ".join(SPELLINGS.get(word, word) for word in words)


def track_pitch(sound: Sound) -> NDArray[np.float64]:
    """[N] -> pitch of the voiced windows in semitones from their median, in order.

    By normalized autocorrelation (Boersma 1993). A pitch at either end of the range is none, and
    one further than `_MAX_SEMITONES` from the median is an octave error.
    """
    if len(sound) < _WINDOW:
        return np.zeros(0)
    rows = np.lib.stride_tricks.sliding_window_view(sound, _WINDOW)[::_HOP].astype(np.float64)
    level = 10 * np.log10(np.square(rows).mean(axis=1) + 1e-10)
    taper: NDArray[np.float64] = np.hanning(_WINDOW).astype(np.float64)
    likeness = _autocorrelate((rows - rows.mean(axis=1, keepdims=True)) * taper)
    likeness /= np.maximum(_autocorrelate(taper[None]), 1e-6)
    first, last = RATE_HZ // _MAX_HZ, RATE_HZ // _MIN_HZ
    lags = np.arange(first, last + 1)
    # Two periods fit as well as one: shorter lags are preferred a little.
    best = (likeness[:, lags] - 0.06 * np.log2(lags / first)).argmax(axis=1) + first
    voiced = (likeness[np.arange(len(best)), best] > _VOICED) & (best > first) & (best < last)
    voiced &= level > level.max() + _LOUD_DB
    if not voiced.any():
        return np.zeros(0)
    semitones = 12 * np.log2(RATE_HZ / best[voiced])
    centred: NDArray[np.float64] = semitones - np.median(semitones)
    return centred[np.abs(centred) < _MAX_SEMITONES]


def measure_ending(pitch: NDArray[np.float64]) -> float:
    """[W] semitones -> how high they end; 0 if there are none."""
    highest = np.sort(pitch[-_END_WINDOWS:])[-_HIGH_WINDOWS:]
    return float(highest.mean()) if len(highest) else 0.0


def _autocorrelate(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each row's, against that at lag 0."""
    power = np.square(np.abs(np.fft.rfft(rows, 2 * rows.shape[1], axis=1)))
    lags: NDArray[np.float64] = np.fft.irfft(power, axis=1)[:, : rows.shape[1]]
    normalized: NDArray[np.float64] = lags / np.maximum(lags[:, :1], 1e-12)
    return normalized
