"""Rotary positions with three axes (M-RoPE, arXiv:2409.12191) of tokens with media between them.

Text and sound count on, all axes alike. The rows of a picture or video have their own time, line
and column on top of the position where it begins; what follows continues behind the greatest. The
rows of a video's sound stand among those of its pictures, by time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata_layers.omni.inputs import Film, MediaFeatures, SoundFeatures, VisionFeatures


@dataclass(frozen=True, slots=True)
class TimeScale:
    """The time axis of videos."""

    per_second: int
    """Steps."""
    whole: bool = False
    """Whether frames between two steps stand at the one before; otherwise at fractions."""
    film_block: int | None = None
    """Steps of a film whose rows stand together, those of the pictures before those of the sound;
    then the two marks on either side share a position. None: each row stands by its time."""


@dataclass(frozen=True, slots=True)
class MediaPlacement:
    """Where the rows of one medium are among tokens."""

    offset: int
    media: MediaFeatures | Film
    time: TimeScale

    @property
    def length(self) -> int:
        """Rows."""
        return self.media.rows

    @property
    def end(self) -> int:
        """The first token behind it."""
        return self.offset + self.length

    def parts(self) -> list[tuple[MediaFeatures, NDArray[np.int32]]]:
        """What is encoded of it, and where its rows belong."""
        places = np.arange(self.offset, self.end, dtype=np.int32)
        if not isinstance(self.media, Film):
            return [(self.media, places)]
        sounding = is_sound(self.media, self.time)
        return [(self.media.video, places[~sounding]), (self.media.sound, places[sounding])]


def is_sound(film: Film, scale: TimeScale) -> NDArray[np.bool_]:
    """[rows] of a film in their order: whether each is of its sound. A row of the pictures stands
    before one of the sound at the same time."""
    times = [_place_inside(film.video, scale)[0], np.arange(film.sound.rows, dtype=np.float32)]
    if scale.film_block is not None:
        times = [_number_blocks(of_part, scale.film_block) for of_part in times]
    order = np.argsort(np.concatenate(times), kind="stable")
    return order >= film.video.rows


def _number_blocks(times: NDArray[np.float32], length: int) -> NDArray[np.float32]:
    """[n] -> [n]: the block of each. The reference goes on by one block at a time, even where the
    next row is several blocks later."""
    blocks = np.zeros_like(times)
    block = 0
    for place, time in enumerate(times):
        block += bool(time >= (block + 1) * length)
        blocks[place] = block
    return blocks


def place_positions(count: int, placements: Sequence[MediaPlacement]) -> NDArray[np.float32]:
    """Return the [3, P] positions of `count` tokens: time, line, column. What is generated behind
    them counts on from the greatest.

    WHY float: frames of a video may be fractions apart.

    Args:
        count: P.
        placements: of the media among them, in order.
    """
    parts: list[NDArray[np.float32]] = []
    place, start, paired = 0, np.float32(0), False
    for placement in placements:
        if isinstance(placement.media, SoundFeatures):
            continue
        is_film = isinstance(placement.media, Film)
        pairs = is_film and placement.time.film_block is not None
        parts.append(_count_positions(start, placement.offset - place, paired, pairs))
        start = parts[-1][0, -1] + np.float32(1)
        parts.append(start + _place_inside(placement.media, placement.time))
        # The last row of a video is the last in all directions.
        start = parts[-1][:, -1].max() + np.float32(1)
        place, paired = placement.end, pairs
    parts.append(_count_positions(start, count - place, paired, False))
    return np.concatenate(parts, axis=1)


def _count_positions(
    start: np.float32, count: int, behind_pair: bool, before_pair: bool
) -> NDArray[np.float32]:
    """[3, count]; the first two, or the last two, may share a position."""
    steps = np.arange(count, dtype=np.float32)
    if behind_pair:
        steps = np.maximum(steps - 1, 0)
    if before_pair:
        steps[-1] = steps[-2]
    return np.broadcast_to(start + steps, (3, count))


def _place_inside(media: VisionFeatures | Film, scale: TimeScale) -> NDArray[np.float32]:
    """[3, rows]: from its beginning."""
    if isinstance(media, Film):
        sounding = is_sound(media, scale)
        inside = np.empty((3, media.rows), np.float32)
        inside[:, ~sounding] = _place_inside(media.video, scale)
        inside[:, sounding] = np.arange(media.sound.rows, dtype=np.float32)
        return inside
    grid, merge = media.grid, media.merge_size
    shape = (grid.time, grid.height // merge, grid.width // merge)
    time, line, column = np.indices(shape, dtype=np.float32).reshape(3, -1)
    time = time * np.float32(media.seconds_per_step) * np.float32(scale.per_second)
    if scale.whole:
        time = np.floor(time)
    return np.stack([time, line, column])
