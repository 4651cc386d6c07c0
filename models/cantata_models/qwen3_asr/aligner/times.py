"""Mends times that the aligner gives in no order.

Letters: N times.
"""

from __future__ import annotations

from collections.abc import Sequence

SNAPPED = 2
"""Times in a row that are moved to a neighbour; more than these are spread out between both."""


def mend_times(times: Sequence[float]) -> list[int]:
    """[N] -> [N], none before the one in front of it.

    The longest series that never falls is kept, the first such; whatever is between its members is
    moved.
    """
    kept = _longest_rise(times)
    mended = list(times)
    for last, following in zip([-1, *kept], [*kept, len(times)], strict=True):
        count = following - last - 1
        before = mended[last] if last >= 0 else None
        after = times[following] if following < len(times) else None
        for number in range(1, count + 1):
            mended[last + number] = _between(before, after, number, count)
    return [int(time) for time in mended]


def _between(before: float | None, after: float | None, number: int, count: int) -> float:
    """The time of the `number`th of `count` between two that are kept."""
    if before is None or after is None:
        found = after if before is None else before
        assert found is not None, "at least one time is kept"
        return found
    if count <= SNAPPED:
        return before if number <= count + 1 - number else after
    return before + (after - before) / (count + 1) * number


def _longest_rise(times: Sequence[float]) -> list[int]:
    """Places of the longest series that never falls; of several, the one that ends first, each of
    its members behind the first that it can follow."""
    lengths, previous = [1] * len(times), [-1] * len(times)
    for place, time in enumerate(times):
        for earlier in range(place):
            if times[earlier] <= time and lengths[earlier] + 1 > lengths[place]:
                lengths[place], previous[place] = lengths[earlier] + 1, earlier
    place = lengths.index(max(lengths)) if lengths else -1
    kept = []
    while place >= 0:
        kept.append(place)
        place = previous[place]
    return kept[::-1]
