"""Checks that the audio is as smooth at chunk boundaries as elsewhere.

Two figures are measured at every frame boundary, and at hop boundaries well inside a frame, where
the decoder overlaps and adds in the same way. *Step* is the change of level in dB from the 5 ms
before to the 5 ms after; it reveals gaps and jumps of level. *Click* is the largest third
difference within a quarter millisecond over its typical size within 10 ms; it reveals breaks in the
waveform or its phase. The interior shows what is usual for the sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cantata_models.solo.training.evaluation.acoustics import HOP, Rows, Samples
from cantata_models.solo.training.evaluation.warping import Places

STEP_SPAN = 120
CLICK_REACH, CLICK_SPAN = 6, 240
QUIET = 1e-3
"""Share of the peak below which sound counts as silence."""
STEP_MARGIN_DB = 6.0
CLICK_MARGIN = 1.5
"""A boundary is broken if it exceeds every interior value of its sentence by such a margin."""


@dataclass(frozen=True, slots=True)
class Seams:
    """One sentence's boundaries compared with its interior."""

    boundaries: int
    broken: int
    """Boundaries with a step or click far above any in the interior."""
    step_db: float
    """95th percentile over the boundaries."""
    interior_step_db: float
    click: float
    """95th percentile over the boundaries."""
    interior_click: float


def level_steps(samples: Rows, places: Places, floor: float) -> Rows:
    """Returns the change of level in dB at each place."""
    energy = np.concatenate([[0.0], np.cumsum(np.square(samples))])
    before = (energy[places] - energy[places - STEP_SPAN]) / STEP_SPAN
    after = (energy[places + STEP_SPAN] - energy[places]) / STEP_SPAN
    steps: Rows = np.abs(10 * np.log10((after + floor**2) / (before + floor**2)))
    return steps


def clicks(samples: Rows, places: Places, floor: float) -> Rows:
    """Returns the largest third difference at each place over its local root mean square."""
    bend = np.abs(np.diff(samples, 3, prepend=samples[:1].repeat(3)))
    near = places[:, None] + np.arange(-CLICK_REACH, CLICK_REACH + 1)
    around = places[:, None] + np.arange(-CLICK_SPAN, CLICK_SPAN + 1)
    inner = np.square(bend[near]).sum(axis=1)
    outer = np.square(bend[around]).sum(axis=1) - inner
    usual = np.sqrt(np.maximum(outer, 0) / (around.shape[1] - near.shape[1]))
    largest: Rows = bend[near].max(axis=1) / (usual + floor)
    return largest


def measure_seams(samples: Samples, frame: int) -> Seams:
    """Compares the boundaries every `frame` samples with the hop boundaries between them.

    Sound of one frame or less has no boundaries.
    """
    sound = samples.astype(np.float64)
    floor = QUIET * max(float(np.abs(sound).max(initial=0.0)), 1e-6)
    places = np.arange(HOP, len(sound) - CLICK_SPAN, HOP)
    at_boundary = places % frame == 0
    # A gap that starts or ends one hop away still belongs to the boundary.
    interior = (places % frame > HOP) & (places % frame < frame - HOP)
    if not at_boundary.any():
        return Seams(0, 0, 0.0, 0.0, 0.0, 0.0)
    steps, sharpness = level_steps(sound, places, floor), clicks(sound, places, floor)
    broken = (steps > steps[interior].max() + STEP_MARGIN_DB) | (
        sharpness > sharpness[interior].max() * CLICK_MARGIN
    )

    def high(values: Rows) -> float:
        return float(np.percentile(values, 95))

    return Seams(
        boundaries=int(at_boundary.sum()),
        broken=int((broken & at_boundary).sum()),
        step_db=high(steps[at_boundary]),
        interior_step_db=high(steps[interior]),
        click=high(sharpness[at_boundary]),
        interior_click=high(sharpness[interior]),
    )
