"""Rotary positions with three axes (M-RoPE, arXiv:2409.12191) of tokens with media between them.

Text and sound count on, all axes alike. The rows of a picture or video have their own time, line
and column on top of the position where it begins; what follows continues behind the greatest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata_layers.omni.features import MediaFeatures, VisionFeatures


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the rows of one medium are among tokens."""

    offset: int
    media: MediaFeatures

    @property
    def length(self) -> int:
        """Rows."""
        return self.media.rows

    @property
    def end(self) -> int:
        """The first token behind it."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class TimeScale:
    """The time axis of videos."""

    per_second: int
    """Steps."""
    whole: bool = False
    """Whether frames between two steps stand at the one before; otherwise at fractions."""


def positions_of(
    count: int, placements: Sequence[Placement], time: TimeScale
) -> NDArray[np.float32]:
    """Return the [3, P] positions of `count` tokens: time, line, column. What is generated behind
    them counts on from the greatest.

    WHY float: frames of a video may be fractions apart.

    Args:
        count: P.
        placements: of the media among them, in order.
        time: of videos.
    """
    parts: list[NDArray[np.float32]] = []
    place, start = 0, np.float32(0)
    for placement in placements:
        if not isinstance(placement.media, VisionFeatures):
            continue
        parts.append(_counting(start, placement.offset - place))
        start += np.float32(placement.offset - place)
        parts.append(start + _inside(placement.media, time))
        start = parts[-1].max() + np.float32(1)
        place = placement.end
    parts.append(_counting(start, count - place))
    return np.concatenate(parts, axis=1)


def _counting(start: np.float32, count: int) -> NDArray[np.float32]:
    """[3, count]"""
    return np.broadcast_to(start + np.arange(count, dtype=np.float32), (3, count))


def _inside(media: VisionFeatures, scale: TimeScale) -> NDArray[np.float32]:
    """[3, rows]: from its beginning."""
    grid, merge = media.grid, media.merge_size
    shape = (grid.time, grid.height // merge, grid.width // merge)
    time, line, column = np.indices(shape, dtype=np.float32).reshape(3, -1)
    time = time * np.float32(media.seconds_per_step) * np.float32(scale.per_second)
    if scale.whole:
        time = np.floor(time)
    return np.stack([time, line, column])
