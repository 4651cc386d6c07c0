"""The teachers' audio in memory, and crops of it for the codec's training steps.

Each crop has the frames that precede it. In the middle of speech the decoder has context; only the
start of an utterance follows silence. So the decoder first decodes the frames before a crop,
without gradients, unless the crop starts its utterance. Starts and ends of utterances are rare
among random crops, and a phone lost there is most noticeable, so they are drawn more often. Ends
also get a loss of their own: the last phone is short and faint compared with a second of speech.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile
import torch

from cantata_layers.training.progress import tracked
from cantata_models.solo.networks.codec_decoder import CodecDecoder
from cantata_models.solo.training.losses import SoundLoss

BATCH = 8
CROP_FRAMES = 16
LEAD_FRAMES = 6
"""Covers nearly all of the decoder's memory."""
HEARD_FRAMES = LEAD_FRAMES + CROP_FRAMES
FIRST_SHARE = 0.125
"""Share of crops that start at the start of an utterance."""
LAST_SHARE = 0.35
"""Share of crops that end at the end of an utterance."""
END_FRAMES = 8
"""A final stop's burst may be 0.3 s before the end of the file, and windows fade at their edges."""
END_WEIGHT = 0.6
"""Weight of the loss on the ends relative to the loss on whole crops."""


@dataclass(frozen=True, slots=True)
class Crops:
    """The crops of one batch, as frame numbers in a bank."""

    starts: npt.NDArray[np.int64]
    """[B]: start of the lead; the crop itself starts `LEAD_FRAMES` later."""
    fresh: torch.Tensor
    """[F] int64: rows whose crop starts an utterance."""
    ending: torch.Tensor
    """[E] int64: rows whose crop ends an utterance."""


class CropMaker:
    """Draws crops from a bank of audio."""

    def __init__(self, bank: ClipBank, seed: int) -> None:
        self._first = bank.starts
        self._end = bank.starts + bank.frames
        self._rng = np.random.default_rng(seed)

    def draw(self, batch: int = BATCH) -> Crops:
        rng, last = self._rng, int(self._end[-1]) - CROP_FRAMES
        begin = rng.integers(LEAD_FRAMES, last + 1, batch)
        clip = rng.integers(len(self._first), size=batch)
        kind = rng.random(batch)
        begin = np.where(kind < FIRST_SHARE, self._first[clip], begin)
        begin = np.where(kind >= 1 - LAST_SHARE, self._end[clip] - CROP_FRAMES, begin)
        begin = begin.clip(LEAD_FRAMES, last)
        fresh = np.flatnonzero(np.isin(begin, self._first))
        ending = np.flatnonzero(np.isin(begin + CROP_FRAMES, self._end))
        return Crops(begin - LEAD_FRAMES, torch.from_numpy(fresh), torch.from_numpy(ending))


def decode_crops(decoder: CodecDecoder, crops: Crops, latents: torch.Tensor) -> torch.Tensor:
    """Latents with their lead [B, LEAD_FRAMES + T, Z] -> the crops' [B, T * samples_per_frame]."""
    state = decoder.init_state(len(latents))
    with torch.no_grad():
        decoder.advance(state, latents[:, :LEAD_FRAMES])
        decoder.reset(state, crops.fresh.to(latents.device))
    return decoder.advance(state, latents[:, LEAD_FRAMES:])


def compare_crops(
    loss: SoundLoss,
    decoder: CodecDecoder,
    crops: Crops,
    output: torch.Tensor,
    samples: torch.Tensor,
) -> tuple[torch.Tensor, dict[str, float]]:
    """Compares the decoder's delayed output with the matching input samples.

    Args:
        output: [B, T * samples_per_frame], from `decode_crops`.
        samples: [B, (LEAD_FRAMES + T) * samples_per_frame], the crops with their lead.

    Returns:
        The loss [] and the figures to log.
    """
    frame, lag = decoder.samples_per_frame, decoder.lag
    ours, theirs = output[:, lag:], samples[:, LEAD_FRAMES * frame : samples.shape[1] - lag]
    total, figures = loss.compare(ours, theirs)
    if len(crops.ending):
        rows, end = crops.ending.to(output.device), END_FRAMES * frame
        ends, found = loss.compare(ours[rows, -end:], theirs[rows, -end:])
        total = total + END_WEIGHT * ends
        figures |= {f"end_{name}": value for name, value in found.items()}
    return total, figures


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
