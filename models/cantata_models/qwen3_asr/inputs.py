"""What the builder gives the aligner."""

from __future__ import annotations

from dataclasses import dataclass

from cantata_layers.omni.features import SoundFeatures


@dataclass(frozen=True, slots=True)
class AlignerInput:
    """The sound whose words are to get their times."""

    features: SoundFeatures
    seconds: float
    """Of the sound, without what it was filled up with."""
    language: str
    """BCP 47 tag; empty: the thinker names it."""
    is_wanted: bool
    """Whether times are wanted; otherwise the transcript has none."""
