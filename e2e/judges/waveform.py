"""What no speech has, found in the samples alone: offset, holes, clicks, clipping, repetition.

The limits are about a third above the worst of 112 sentences in the four voices of solo, version 5
(docs/testing.md). Samples are floats in [-1, 1), [N].
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]

MAX_MEAN = 0.01
MAX_LOCAL_MEAN = 0.025
LOCAL_S = 0.25
HOLE_S = 0.004
"""A constant run of this length must begin and end in near silence."""
BESIDE_HOLE_S = 0.003
MAX_BESIDE_HOLE = 0.004
MAX_JUMP = 0.7
"""Largest jump between neighbouring samples; a sample that wraps round jumps by nearly two."""
MAX_CLICK = 6.5
CLICK_REACH, CLICK_AROUND = 6, 240
FLAT_TOP_SAMPLES = 5
FLAT_TOP_LEVEL = 0.1
FULL_SCALE = 0.999
REPEAT_S = 0.005
QUIET_END_S = 0.02
MAX_AT_END = 0.003
QUIET_DB = -40.0
"""Relative to the loud parts of the sentence: what counts as a pause."""
HOP_S = 0.005
MAX_HEAD_S = 0.12
MIN_TAIL_S = 0.05
MIN_USUAL_TAIL_S = 0.1
"""Least median of the silence at the end of a voice's sentences: a cut of 40 ms shows."""


def faults(sound: Samples, rate: int, *, lossy: bool = False) -> list[str]:
    """What is wrong with a sentence's sound; `lossy`: an encoder has changed every sample."""
    found = [*_offset(sound, rate), *_edges(sound, rate), *_clipping(sound)]
    found += [
        f"a hole of {1000 * length:.0f} ms at {at:.2f} s" for at, length in holes(sound, rate)
    ]
    if not lossy:
        found += [*_clicks(sound, rate), *_repetition(sound, rate)]
    return found


def level_db(sound: Samples, rate: int) -> NDArray[np.float64]:
    """Per 5 ms, relative to the loud parts."""
    hop = round(HOP_S * rate)
    rows = sound[: len(sound) // hop * hop].reshape(-1, hop).astype(np.float64)
    power = np.square(rows).mean(axis=1)
    loud = np.percentile(power, 95) + 1e-12
    found: NDArray[np.float64] = 10 * np.log10(power / loud + 1e-12)
    return found


def runs(mask: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """[start, end) of each stretch where `mask` holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def pauses(sound: Samples, rate: int, min_s: float) -> list[tuple[float, float]]:
    """Start and end of each silence of at least this length, in seconds."""
    quiet = runs(level_db(sound, rate) < QUIET_DB)
    return [(a * HOP_S, b * HOP_S) for a, b in quiet if (b - a) * HOP_S >= min_s]


def tail_s(sound: Samples, rate: int) -> float:
    """Seconds of silence at the end."""
    loud = np.flatnonzero(level_db(sound, rate) >= QUIET_DB)
    return (len(sound) / rate) - (int(loud[-1]) + 1) * HOP_S


def holes(sound: Samples, rate: int) -> Iterator[tuple[float, float]]:
    """Time and length of constant runs that begin or end in the middle of sound.

    A pause is constant too, but speech fades to it: the 3 ms beside it are near silence.
    """
    beside = round(BESIDE_HOLE_S * rate)
    still = np.abs(np.diff(sound)) <= 0.5 / 32768
    for start, end in runs(still):
        if end - start < HOLE_S * rate or start < beside or end > len(sound) - beside - 1:
            continue
        edges = np.concatenate([sound[start - beside : start], sound[end + 1 : end + 1 + beside]])
        if np.abs(edges - sound[start]).max() > MAX_BESIDE_HOLE:
            yield start / rate, (end - start) / rate


def sharpest_click(sound: Samples) -> tuple[float, int]:
    """The largest third difference relative to those around it, and where."""
    bend = np.abs(np.diff(sound.astype(np.float64), 3, prepend=[sound[0]] * 3))
    energy = np.concatenate([[0.0], np.cumsum(np.square(bend))])
    at = np.arange(CLICK_AROUND, len(sound) - CLICK_AROUND)
    around = energy[at + CLICK_AROUND + 1] - energy[at - CLICK_AROUND]
    near = energy[at + CLICK_REACH + 1] - energy[at - CLICK_REACH]
    usual = np.sqrt(np.maximum(around - near, 0) / (2 * (CLICK_AROUND - CLICK_REACH)))
    sharpness = bend[at] / (usual + 1e-3 * float(np.abs(sound).max()) + 1e-9)
    worst = int(sharpness.argmax())
    return float(sharpness[worst]), int(at[worst])


def _offset(sound: Samples, rate: int) -> Iterator[str]:
    if abs(float(sound.mean())) >= MAX_MEAN:
        yield f"an offset of {sound.mean():.3f}"
    width = round(LOCAL_S * rate)
    sums = np.concatenate([[0.0], np.cumsum(sound, dtype=np.float64)])
    local = np.abs(sums[width:] - sums[:-width]) / width
    if local.max(initial=0.0) >= MAX_LOCAL_MEAN:
        yield f"an offset of {local.max():.3f} at {local.argmax() / rate:.2f} s"


def _edges(sound: Samples, rate: int) -> Iterator[str]:
    end = float(np.abs(sound[-round(QUIET_END_S * rate) :]).max())
    if end > MAX_AT_END:
        yield f"it ends in the middle of sound, at a level of {end:.3f}"
    loud = np.flatnonzero(level_db(sound, rate) >= QUIET_DB)
    if int(loud[0]) * HOP_S > MAX_HEAD_S:
        yield f"{int(loud[0]) * HOP_S:.2f} s of silence before it begins"
    tail = tail_s(sound, rate)
    if tail < MIN_TAIL_S:
        yield f"only {1000 * tail:.0f} ms of silence at its end"


def _clipping(sound: Samples) -> Iterator[str]:
    peak = float(np.abs(sound).max())
    if peak >= FULL_SCALE:
        yield f"a peak of {peak:.3f}"
    flat = [(a, b - a + 1) for a, b in runs(np.diff(sound) == 0)]
    tops = [length for a, length in flat if abs(sound[a]) > FLAT_TOP_LEVEL]
    if max(tops, default=0) >= FLAT_TOP_SAMPLES:
        yield f"a flat top of {max(tops)} samples"


def _clicks(sound: Samples, rate: int) -> Iterator[str]:
    jump = np.abs(np.diff(sound))
    if jump.max() > MAX_JUMP:
        yield f"a jump of {jump.max():.2f} at {jump.argmax() / rate:.2f} s"
    sharpness, at = sharpest_click(sound)
    if sharpness > MAX_CLICK:
        yield f"a click ({sharpness:.1f}) at {at / rate:.2f} s"


def _repetition(sound: Samples, rate: int) -> Iterator[str]:
    """No two places of speech are the same bits for 5 ms."""
    width = round(REPEAT_S * rate)
    # A rolling hash: samples times powers of an odd number, in the arithmetic of 64 bits.
    whole = np.round(sound * 32768).astype(np.int64).astype(np.uint64)
    base = np.uint64(0x9E3779B97F4A7C15)
    powers = np.cumprod(np.full(len(whole), base, dtype=np.uint64))
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(whole * powers)])
    # A window's sum has the power of its place: bring all to the last place's.
    keys = (sums[width:] - sums[:-width]) * powers[::-1][width - 1 :]
    moving = np.array([]) if not len(keys) else _span(sound, width) > MAX_BESIDE_HOLE
    order = np.argsort(keys, kind="stable")
    same = (keys[order][1:] == keys[order][:-1]) & moving[order[1:]]
    if same.any():
        first = int(order[:-1][same].min())
        yield f"sound is repeated: the {1000 * REPEAT_S:g} ms at {first / rate:.2f} s"


def _span(sound: Samples, width: int) -> NDArray[np.float32]:
    """Difference between the highest and the lowest of each window, roughly: of every eighth."""
    views = np.lib.stride_tricks.sliding_window_view(sound, width)[:, ::8]
    found: NDArray[np.float32] = views.max(axis=1) - views.min(axis=1)
    return found
