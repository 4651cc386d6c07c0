"""All of the teachers' audio, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile
import torch

from cantata_models.solo.training.progress import tracked

INT16_SCALE = 32768.0


def read_int16(path: Path, frame: int) -> npt.NDArray[np.int16]:
    """Reads one file and pads it with silence to a whole number of `frame`-sample frames."""
    samples, _ = soundfile.read(path, dtype="int16")
    return np.pad(samples, (0, -len(samples) % frame))


class ClipBank:
    """Utterances concatenated in one int16 array, each padded to whole frames."""

    def __init__(self, paths: Sequence[Path], frame: int) -> None:
        clips = [read_int16(path, frame) for path in tracked(paths, len(paths), "load sound")]
        self.frame = frame
        self.samples = np.concatenate(clips)
        self.frames = np.array([len(clip) // frame for clip in clips])
        self.starts = np.cumsum(self.frames) - self.frames

    def __len__(self) -> int:
        return len(self.frames)

    def clip(self, index: int) -> torch.Tensor:
        """Returns one utterance, [T * frame] float32."""
        start = self.starts[index] * self.frame
        stop = start + self.frames[index] * self.frame
        return torch.from_numpy(self.samples[start:stop].astype(np.float32) / INT16_SCALE)

    def at(self, starts: npt.NDArray[np.int64], frames: int) -> torch.Tensor:
        """Returns [len(starts), frames * frame] float32, starting at these frame numbers."""
        width = frames * self.frame
        rows = np.stack([self.samples[s * self.frame : s * self.frame + width] for s in starts])
        return torch.from_numpy(rows.astype(np.float32) / INT16_SCALE)
