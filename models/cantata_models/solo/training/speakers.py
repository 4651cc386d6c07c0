"""The speakers of the training data: the stock voices' teachers and pseudo-speakers based on them.

A pseudo-speaker is a teacher with a different pitch, resampled to play faster or slower. The pitch
setting shifts only the melody. Resampling shifts melody and formants together, and the speaking
rate compensates for its effect on the pace. From pseudo-speakers the network learns to follow a
reference recording.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cantata_models.solo.config import VOICES

TEACHERS: dict[str, str] = {"clara": "clb", "ben": "bdl", "ruby": "slt", "ewan": "alan"}
"""The RHVoice voice behind each stock voice."""
PSEUDO_SPEAKERS = 72
HELD_OUT_SPEAKERS = 12
"""The last pseudo-speakers are never trained on."""
PITCH_RANGE = (82, 124)
"""Percent of the teacher's own pitch."""
WARP_RANGE = (0.87, 1.14)
"""Outside this range a reading is hard to understand."""
MIN_CHANGE = 0.06
"""Least distance of a pseudo-speaker from its teacher (log pitch plus log warp)."""


@dataclass(frozen=True, slots=True)
class TeacherSpeaker:
    """A teacher with pitch and warp settings."""

    name: str
    teacher: str
    """The RHVoice voice."""
    pitch: int = 100
    """Percent of the teacher's own pitch."""
    warp: float = 1.0
    """Factor by which the reading is played faster."""

    @property
    def stock(self) -> bool:
        """Whether this is one of the voices that the server offers."""
        return self.name in TEACHERS


STOCK_SPEAKERS = tuple(TeacherSpeaker(voice.id, TEACHERS[voice.id]) for voice in VOICES)


def _pseudo_speakers() -> tuple[TeacherSpeaker, ...]:
    rng = np.random.default_rng(20)
    teachers = list(TEACHERS.values())
    made: list[TeacherSpeaker] = []
    while len(made) < PSEUDO_SPEAKERS:
        pitch, warp = int(rng.integers(*PITCH_RANGE)), float(rng.uniform(*WARP_RANGE))
        if abs(np.log(pitch / 100)) + abs(np.log(warp)) > MIN_CHANGE:
            teacher = teachers[len(made) % len(teachers)]
            made.append(TeacherSpeaker(f"pseudo{len(made):02d}", teacher, pitch, round(warp, 3)))
    return tuple(made)


_ALL_PSEUDO = _pseudo_speakers()
TRAINING_PSEUDO = _ALL_PSEUDO[:-HELD_OUT_SPEAKERS]
HELD_OUT_PSEUDO = _ALL_PSEUDO[-HELD_OUT_SPEAKERS:]
SPEAKERS = {item.name: item for item in (*STOCK_SPEAKERS, *_ALL_PSEUDO)}
