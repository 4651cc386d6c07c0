"""Stage audio: RHVoice reads every sentence. The audio is trimmed and its peak normalized."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from cantata_layers.training.progress import tracked
from cantata_models.solo.training.rhvoice import engine
from cantata_models.solo.training.speakers import SPEAKERS, TRAINING_PSEUDO, TeacherSpeaker

logger = logging.getLogger(__name__)

SAMPLE_RATE = 24_000
PEAK = 0.7
LEAD_SILENCE_S = 0.03
"""Silence kept before the first sound. It is short because it adds to the latency."""
TRAIL_SILENCE_S = 0.12
AUDIBLE = 0.01
"""Share of the peak below which trimming treats samples as silence."""

MIN_RATE, MAX_RATE = 0.5, 2.0
ODD_PACE_SHARE = 0.25
"""Share of utterances read faster or slower than usual."""
STOCK_SHARES = {"clara": 0.52, "ben": 0.12, "ruby": 0.12, "ewan": 0.12}
"""Share of the shared utterances per stock voice; the pseudo-speakers read the rest."""
MAIN_SPEAKER = SPEAKERS["clara"]
"""Reads alone after the shared utterances: the talker needs many hours of one voice."""
OTHER_SPEAKERS = [SPEAKERS[name] for name in STOCK_SHARES if name != MAIN_SPEAKER.name]
"""Read the rest, split evenly with the pseudo-speakers. The talker memorises a voice that has only
a few hours of audio."""

Samples = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float64]


class TeacherMissing(RuntimeError):
    """A program required by the audio stage is not installed."""


@dataclass(frozen=True, slots=True)
class TrainingUtterance:
    """One sentence, its speaker and pace, and the path of its audio."""

    index: int
    speaker: TeacherSpeaker
    rate: float
    """Relative to the teacher's usual pace."""
    text: str
    path: Path

    @property
    def done(self) -> bool:
        """Whether the audio file exists."""
        return self.path.exists()


def require_teachers() -> None:
    """Raises TeacherMissing, naming the Debian packages, if RHVoice cannot be used."""
    try:
        engine()
    except (OSError, RuntimeError) as error:
        raise TeacherMissing(
            f"{error}; install the Debian packages librhvoice5 and rhvoice-english (the latter "
            "from non-free)"
        ) from error


def drawn(
    speakers: Sequence[TeacherSpeaker], bounds: Rows, who: float, which: float
) -> TeacherSpeaker:
    """Returns the first speaker whose upper bound exceeds `who`, else a pseudo-speaker."""
    place = int(np.searchsorted(bounds, who, side="right"))
    if place < len(bounds):
        return speakers[place]
    return TRAINING_PSEUDO[int(which * len(TRAINING_PSEUDO))]


def plan_utterances(
    sentences: Path, folder: Path, shared: int, main: int
) -> tuple[TrainingUtterance, ...]:
    """Returns one utterance for every line of the sentence file.

    All speakers share the first `shared` lines, the main speaker reads the next `main`, and the
    others read the rest. In the parts with several speakers, any prefix has the same mix of
    speakers as the whole. Adding lines does not change the utterances of earlier lines.
    """
    rng = np.random.default_rng(10)
    everyone = [SPEAKERS[name] for name in STOCK_SHARES]
    bounds = np.cumsum(list(STOCK_SHARES.values()))
    even = np.arange(1, len(OTHER_SPEAKERS) + 1) / (len(OTHER_SPEAKERS) + 1)
    planned: list[TrainingUtterance] = []
    for index, text in enumerate(sentences.read_text().splitlines()):
        who, which, odd, pace = rng.random(4)
        if index < shared:
            speaker = drawn(everyone, bounds, who, which)
        elif index < shared + main:
            speaker = MAIN_SPEAKER
        else:
            speaker = drawn(OTHER_SPEAKERS, even, who, which)
        rate = 1.0
        if odd < ODD_PACE_SHARE:
            rate = round(math.exp(math.log(MIN_RATE) + pace * math.log(MAX_RATE / MIN_RATE)), 2)
        path = folder / f"{index:06d}.{speaker.name}.wav"
        planned.append(TrainingUtterance(index, speaker, rate, text, path))
    return tuple(planned)


def speak(text: str, speaker: TeacherSpeaker, rate: float = 1.0) -> Samples:
    """Returns the speaker's reading: untrimmed float32 mono at 24 kHz."""
    pace = rate / speaker.warp
    samples, found = engine().speak(text, speaker.teacher, pace, speaker.pitch / 100)
    if found != SAMPLE_RATE:
        raise ValueError(f"{speaker.teacher} gave {found} Hz")
    if speaker.warp != 1.0:
        samples = soxr.resample(samples, SAMPLE_RATE * speaker.warp, SAMPLE_RATE)
    return samples


def trim(samples: Samples) -> Samples:
    """Cuts long silence at both ends and scales the peak to `PEAK`."""
    peak = float(np.abs(samples).max())
    audible = np.flatnonzero(np.abs(samples) > AUDIBLE * peak)
    start = max(0, int(audible[0]) - int(LEAD_SILENCE_S * SAMPLE_RATE))
    stop = int(audible[-1]) + int(TRAIL_SILENCE_S * SAMPLE_RATE)
    tail = np.zeros(max(0, stop - len(samples)), dtype=np.float32)
    trimmed: Samples = np.concatenate([samples[start:stop], tail]) * np.float32(PEAK / peak)
    return trimmed


def render(utterance: TrainingUtterance) -> float:
    """Writes one utterance's audio if it is missing. Returns its seconds, or 0 on failure."""
    if utterance.done:
        return float(soundfile.info(utterance.path).duration)
    try:
        samples = trim(speak(utterance.text, utterance.speaker, utterance.rate))
    except (RuntimeError, ValueError, IndexError) as error:
        logger.warning("skipping %r: %s", utterance.text, error)
        return 0.0
    partial_path = utterance.path.with_suffix(".part")
    soundfile.write(partial_path, samples, SAMPLE_RATE, format="WAV", subtype="PCM_16")
    partial_path.rename(utterance.path)
    return len(samples) / SAMPLE_RATE


def render_all(utterances: tuple[TrainingUtterance, ...], workers: int) -> float:
    """Renders every utterance; returns the total hours."""
    require_teachers()
    for folder in {item.path.parent for item in utterances}:
        folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(workers) as pool:
        seconds: Iterator[float] = pool.map(render, utterances, chunksize=8)
        hours = sum(tracked(seconds, len(utterances), "audio")) / 3600
    logger.info("%.2f hours of sound", hours)
    return hours
