"""Annotated speech on disk: many utterances in one `.npz`.

Letters: T phones, F frames of 12.5 ms, N samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

RATE_HZ = 24_000
PITCH_HOP = 300
"""Samples for each value of pitch and energy."""
DURATION_HOP = 600
"""Samples for each frame of a duration."""

Samples = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class AnnotatedSpeech:
    """One utterance and what the teacher knows of it."""

    voice: str
    text: str
    speed: float
    phones: npt.NDArray[np.int16]
    """[T] ids of misaki's alphabet, with the padding at both ends."""
    durations: npt.NDArray[np.int16]
    """[T] frames of 25 ms; together the length of the sound."""
    pitch: npt.NDArray[np.float32]
    """[F] Hz; about 0 where there is none."""
    energy: npt.NDArray[np.float32]
    """[F] in the teacher's own measure."""
    samples: Samples
    """[N], as loud as the teacher speaks; none if it only planned the utterance."""

    def __post_init__(self) -> None:
        heard = len(self.samples)
        spoken, drawn = int(self.durations.sum()) * DURATION_HOP, len(self.pitch) * PITCH_HOP
        lengths_agree = spoken == drawn and len(self.pitch) == len(self.energy)
        lengths_agree = lengths_agree and heard in (spoken, 0)
        if not lengths_agree or len(self.phones) != len(self.durations):
            raise ValueError(
                f"{self.voice}: {heard} samples, but durations of {spoken} and pitch of {drawn}"
            )

    @property
    def seconds(self) -> float:
        """Length, also of a sound that was not made."""
        return len(self.pitch) * PITCH_HOP / RATE_HZ


_ARRAYS = ("phones", "durations", "pitch", "energy", "samples")


def write_shard(path: Path, spoken: Sequence[AnnotatedSpeech]) -> None:
    """Writes a shard; if that is interrupted, there is none."""
    arrays: dict[str, npt.NDArray[np.generic]] = {
        "voice": np.array([one.voice for one in spoken]),
        "text": np.array([one.text for one in spoken]),
        "speed": np.array([one.speed for one in spoken], np.float32),
    }
    for name in _ARRAYS:
        parts = [getattr(one, name) for one in spoken]
        arrays[name] = np.concatenate(parts)
        arrays[f"{name}_ends"] = np.cumsum([len(part) for part in parts])
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    part.replace(path)


def read_shard(path: Path) -> list[AnnotatedSpeech]:
    """The utterances of a shard, in order."""
    with np.load(path) as saved:
        arrays = {name: saved[name] for name in saved.files}
    split = {name: np.split(arrays[name], arrays[f"{name}_ends"][:-1]) for name in _ARRAYS}
    return [
        AnnotatedSpeech(
            voice=str(arrays["voice"][index]),
            text=str(arrays["text"][index]),
            speed=float(arrays["speed"][index]),
            **{name: split[name][index] for name in _ARRAYS},
        )
        for index in range(len(arrays["voice"]))
    ]
