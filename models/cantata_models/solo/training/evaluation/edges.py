"""Checks that the first and the last phone of a sentence are present.

The first and last 60 ms of the teacher's audible sound must be in the speech. The time alignment
gives the matching hops of the speech. A dropped phone leaves those hops silent. If the next phone
took its place, the 60 ms shrink to a few hops that sound different. So an edge is missing when its
level is far below the teacher's, or when it is squeezed and matches far worse than the rest of the
sentence.

Levels are A-weighted: some teachers' final stops end in a blow on the microphone below 100 Hz,
which is not a phone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cantata_models.solo.training.evaluation.acoustics import Analysis, Rows
from cantata_models.solo.training.evaluation.warping import Places, Warp

EDGE_HOPS = 6
AUDIBLE_DB = -30.0
"""Level relative to the loud hops of the sentence."""
DEFICIT_DB = 15.0
SQUEEZED_HOPS = 3
STRANGE_DB = 2.0
"""Mel-cepstral distance above the sentence's median."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Whether the start or the end of the sentence was lost."""

    first_missing: bool
    last_missing: bool


def relative_level(analysis: Analysis) -> Rows:
    """Returns [H]: audible dB relative to the sentence's loud hops."""
    level: Rows = analysis.audible_db - np.percentile(analysis.audible_db, 95)
    return level


def is_missing(edge: Places, ours: Rows, theirs: Rows, path: Warp) -> bool:
    """Judges one edge, given as hops of the teacher, from both readings' relative levels."""
    steps = np.isin(path.theirs, edge)
    heard = [ours[path.ours[path.theirs == hop]].max() for hop in edge]
    if np.median(theirs[edge] - heard) > DEFICIT_DB:
        return True
    squeezed = len(np.unique(path.ours[steps])) <= SQUEEZED_HOPS
    strange = path.cost_db[steps].mean() > np.median(path.cost_db) + STRANGE_DB
    return bool(squeezed and strange)


def compare_edges(speech: Analysis, teacher: Analysis, path: Warp) -> Edges:
    """Looks for the teacher's first and last 60 ms in the speech."""
    ours, theirs = relative_level(speech), relative_level(teacher)
    audible = np.flatnonzero(theirs > AUDIBLE_DB)
    first = np.arange(audible[0], min(audible[0] + EDGE_HOPS, len(theirs)))
    last = np.arange(max(0, audible[-1] + 1 - EDGE_HOPS), audible[-1] + 1)
    return Edges(is_missing(first, ours, theirs, path), is_missing(last, ours, theirs, path))
