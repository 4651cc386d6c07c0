"""Whether a value is what a dataclass's annotation says; for annotations of plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np


@cache
def get_hints(kind: type) -> Mapping[str, Any]:
    """The annotations of a dataclass's fields."""
    names = getattr(kind, "__dataclass_fields__", {})
    return {name: hint for name, hint in get_type_hints(kind).items() if name in names}


def fits(value: object, hint: Any) -> bool:
    """Whether a value may stand where the annotation does.

    Raises:
        TypeError: the annotation is not one of plain data.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in arguments)
    if origin is Literal:
        return value in arguments
    if origin is tuple:
        return isinstance(value, tuple) and _fit_in_order(value, arguments)
    if origin in (Sequence, list):
        allowed = list if origin is list else (list, tuple)
        return isinstance(value, allowed) and _fit_all(value, arguments[0])
    if origin in (Mapping, dict):
        key, content = arguments
        return isinstance(value, dict) and all(
            fits(k, key) and fits(v, content) for k, v in value.items()
        )
    if origin is np.ndarray:
        [number] = get_args(arguments[1])
        return isinstance(value, np.ndarray) and number in (Any, value.dtype.type)
    if origin is None and (hint is None or isinstance(hint, type)):
        return _is_a(value, NoneType if hint is None else hint)
    raise TypeError(f"{hint} is not an annotation of plain data")


def _fit_all(values: Sequence[object], hint: Any) -> bool:
    """Thousands of numbers, such as a prompt's tokens, are not looked at one by one."""
    if hint in (int, str) and {hint}.issuperset(map(type, values)):
        return True
    return all(fits(value, hint) for value in values)


def _fit_in_order(values: tuple[object, ...], hints: tuple[Any, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        return _fit_all(values, hints[0])
    return len(values) == len(hints) and all(map(fits, values, hints))


def _is_a(value: object, kind: type) -> bool:
    """Python lets an int stand for a float, and a bool for an int; here a bool is only a bool."""
    if isinstance(value, bool):
        return kind in (bool, object)
    return isinstance(value, (int, float)) if kind is float else isinstance(value, kind)
