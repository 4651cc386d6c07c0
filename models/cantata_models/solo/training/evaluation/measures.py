"""The measurements of one sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cantata_models.solo.training.evaluation.acoustics import (
    FULL_SCALE,
    SAMPLE_RATE,
    Samples,
    analyze,
    median_pitch_hz,
)
from cantata_models.solo.training.evaluation.edges import Edges, compare_edges
from cantata_models.solo.training.evaluation.judge import Judge
from cantata_models.solo.training.evaluation.seams import Seams, measure_seams
from cantata_models.solo.training.evaluation.timbre import embedding
from cantata_models.solo.training.evaluation.warping import warp

FRAME_SAMPLES = 1920


@dataclass(frozen=True, slots=True)
class RecordingMeasures:
    """Measurements of one recording alone."""

    words: str
    """The judge's transcript; empty if no judge was used."""
    seconds: float
    peak: float
    clipped: int
    """Number of samples at full scale."""
    seams: Seams
    pitch_hz: float
    """Median over the voiced hops."""
    embedding: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Likeness:
    """Comparison of speech with the teacher's reading of the same sentence."""

    distortion_db: float
    edges: Edges


def measure(samples: Samples, judge: Judge | None) -> RecordingMeasures:
    """Measures mono sound at 24 kHz."""
    analysis = analyze(samples)
    magnitude = np.abs(samples)
    return RecordingMeasures(
        words="" if judge is None else judge.hear(samples, SAMPLE_RATE),
        seconds=len(samples) / SAMPLE_RATE,
        peak=float(magnitude.max(initial=0.0)),
        clipped=int((magnitude >= FULL_SCALE).sum()),
        seams=measure_seams(samples, FRAME_SAMPLES),
        pitch_hz=median_pitch_hz(analysis),
        embedding=tuple(round(float(x), 4) for x in embedding(analysis)),
    )


def compare(speech: Samples, teacher: Samples) -> Likeness:
    """Aligns speech with the teacher's reading and compares the two."""
    ours, theirs = analyze(speech), analyze(teacher)
    path = warp(ours, theirs)
    return Likeness(path.distortion_db, compare_edges(ours, theirs, path))
