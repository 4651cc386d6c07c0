"""Stage audio: RHVoice reads every sentence; the sound is trimmed and its level made equal."""

from __future__ import annotations

import logging
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

from cantata_models.solo.training.progress import tracked

logger = logging.getLogger(__name__)

SAMPLE_RATE = 24_000
PEAK = 0.7
LEAD_SILENCE_S = 0.03
"""Kept before the first sound: it is heard as latency."""
TRAIL_SILENCE_S = 0.12
AUDIBLE = 0.01
"""Of the peak: below it a trimmed end counts as silence."""

TEACHERS: dict[str, str] = {"clara": "clb", "ben": "bdl"}
"""RHVoice's voice for each of ours."""
VOICE_PATTERN = ("clara", "ben", "clara", "ben", "clara")
"""Who reads sentence i: entry i modulo 5. The first voice gets three fifths of the sound."""

Samples = npt.NDArray[np.float32]


class TeacherMissing(RuntimeError):
    """A program that the audio stage needs is not installed."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One sentence, who reads it and where the sound lies."""

    index: int
    voice: str
    text: str
    path: Path

    @property
    def done(self) -> bool:
        """Whether the sound is there."""
        return self.path.exists()


def require_teachers() -> None:
    """Raises TeacherMissing, naming the Debian packages, unless RHVoice can be run."""
    if shutil.which("RHVoice-test") is None:
        raise TeacherMissing(
            "RHVoice-test not found: install the Debian packages rhvoice and rhvoice-english "
            "(the latter from non-free)"
        )


def plan_utterances(sentences: Path, folder: Path) -> tuple[Utterance, ...]:
    """Returns one utterance for every line of the sentence file."""
    return tuple(
        Utterance(i, voice := VOICE_PATTERN[i % 5], text, folder / f"{i:06d}.{voice}.wav")
        for i, text in enumerate(sentences.read_text().splitlines())
    )


def speak(text: str, teacher: str) -> Samples:
    """Returns the teacher's reading, float32 mono at 24 kHz, untrimmed."""
    with tempfile.NamedTemporaryFile(suffix=".wav") as wav:
        command = ["RHVoice-test", "-p", teacher, "-o", wav.name]
        subprocess.run(command, input=text.encode(), check=True, capture_output=True, timeout=60)
        samples, rate = soundfile.read(wav.name, dtype="float32")
    if rate != SAMPLE_RATE or samples.ndim != 1:
        raise ValueError(f"{teacher} gave {rate} Hz, {samples.ndim} dimensions")
    return np.asarray(samples, dtype=np.float32)


def trim(samples: Samples) -> Samples:
    """Cuts long silence at both ends and brings the peak to `PEAK`."""
    peak = float(np.abs(samples).max())
    audible = np.flatnonzero(np.abs(samples) > AUDIBLE * peak)
    start = max(0, int(audible[0]) - int(LEAD_SILENCE_S * SAMPLE_RATE))
    stop = int(audible[-1]) + int(TRAIL_SILENCE_S * SAMPLE_RATE)
    tail = np.zeros(max(0, stop - len(samples)), dtype=np.float32)
    trimmed: Samples = np.concatenate([samples[start:stop], tail]) * np.float32(PEAK / peak)
    return trimmed


def render(utterance: Utterance, teacher: str | None = None) -> float:
    """Writes one utterance's sound unless it is there. Returns its seconds, 0 on failure."""
    if utterance.done:
        return float(soundfile.info(utterance.path).duration)
    try:
        samples = trim(speak(utterance.text, teacher or TEACHERS[utterance.voice]))
    except (subprocess.SubprocessError, ValueError, IndexError) as error:
        logger.warning("skipping %r: %s", utterance.text, error)
        return 0.0
    partial_path = utterance.path.with_suffix(".part")
    soundfile.write(partial_path, samples, SAMPLE_RATE, format="WAV", subtype="PCM_16")
    partial_path.rename(utterance.path)
    return len(samples) / SAMPLE_RATE


def render_all(utterances: tuple[Utterance, ...], workers: int) -> float:
    """Renders every utterance; returns the total hours."""
    require_teachers()
    for folder in {item.path.parent for item in utterances}:
        folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(workers) as pool:
        seconds: Iterator[float] = pool.map(render, utterances, chunksize=8)
        hours = sum(tracked(seconds, len(utterances), "audio")) / 3600
    logger.info("%.2f hours of sound", hours)
    return hours
