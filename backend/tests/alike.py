"""Whether two values are equal, with the arrays in them and with the types of all their parts."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np


def same(one: Any, other: Any) -> bool:
    """Arrays, dataclasses and sequences of them, and plain values."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return type(one) is type(other) and all(
            same(getattr(one, name), getattr(other, name)) for name in names
        )
    if isinstance(one, tuple | list):
        equal = len(one) == len(other) and all(map(same, one, other))
        return type(one) is type(other) and equal
    return type(one) is type(other) and one == other
