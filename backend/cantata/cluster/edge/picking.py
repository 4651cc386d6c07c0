"""Which of several replicas gets a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

R = TypeVar("R")


def most_free(free: Mapping[R, int], turn: int) -> R | None:
    """The one with most free places; None: none has any.

    Args:
        free: places of each, less those that requests on their way will take.
        turn: a count of choices: of several that have equally many, each is chosen in turn.
    """
    most = max(free.values(), default=0)
    if most <= 0:
        return None
    equals = [replica for replica, places in free.items() if places == most]
    return equals[turn % len(equals)]
