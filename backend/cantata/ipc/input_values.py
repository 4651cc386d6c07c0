"""Stage inputs as trees of plain values, which MessagePack carries.

A stage's input is a dataclass of its model's. It travels as its class's name and its fields. The
name is looked up among the dataclasses of the model's own packages, and each field is checked
against its annotation, so a stage sees nothing that its own builder could not have made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.ipc.annotations import fits, get_hints

CONTRACT = "cantata.contract.data"
"""Its dataclasses may stand in any model's."""
_MAX_DEPTH = 16
_TUPLE, _LIST, _DICT, _ARRAY, _DATACLASS, _ENUM = range(6)
_SEQUENCES: Mapping[int, Callable[[Any], Any]] = {_TUPLE: tuple, _LIST: list}
_SCALARS = frozenset({type(None), bool, int, float, str, bytes})
"""A prompt is a sequence of thousands of these, which are not looked at one by one."""


def flatten(value: object) -> tuple[Any, tuple[NDArray[Any], ...]]:
    """A stage's input as a tree, and the arrays that the tree numbers.

    Raises:
        TypeError: it holds something that a stage's input may not hold.
    """
    arrays: list[NDArray[Any]] = []
    return _flat(value, arrays), tuple(arrays)


def _flat(value: object, arrays: list[NDArray[Any]]) -> Any:
    match value:
        case Enum():
            return [_ENUM, _name(type(value)), value.value]
        case None | bool() | int() | float() | str() | bytes() if not isinstance(value, np.generic):
            return value
        case tuple() | list():
            kind = _TUPLE if isinstance(value, tuple) else _LIST
            if _SCALARS.issuperset(map(type, value)):
                return [kind, list(value)]
            return [kind, [_flat(one, arrays) for one in value]]
        case Mapping():
            pairs = value.items()
            return [_DICT, [[_flat(k, arrays), _flat(v, arrays)] for k, v in pairs]]
        case np.ndarray():
            arrays.append(value)
            return [_ARRAY, len(arrays) - 1]
        case _ if is_dataclass(value) and not isinstance(value, type):
            content = {one.name: _flat(getattr(value, one.name), arrays) for one in fields(value)}
            return [_DATACLASS, _name(type(value)), content]
    raise TypeError(f"a {type(value).__name__} in a stage's input cannot go to another machine")


def unflatten(
    tree: object, arrays: Sequence[NDArray[Any]], packages: Collection[str] | None
) -> Any:
    """The stage's input from which `flatten` made a tree.

    Args:
        tree: what arrived.
        arrays: that it numbers.
        packages: whose dataclasses and enums it may name, beside the contract's; None: any's, for
            what the program itself has sent.

    Raises:
        ValueError: it is no such tree.
    """
    try:
        return _Reader(arrays, packages).read(tree, 0)
    except (TypeError, ValueError, LookupError, ImportError, AttributeError) as error:
        raise ValueError(f"what arrived is no stage's input: {error}") from error


class _Reader:
    """Builds values; raises whatever a malformed tree leads to."""

    def __init__(self, arrays: Sequence[NDArray[Any]], packages: Collection[str] | None) -> None:
        self._arrays, self._packages = arrays, packages

    def read(self, tree: Any, depth: int) -> Any:
        if not isinstance(tree, list):
            return tree
        if depth > _MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        inner = depth + 1
        match tree:
            case [int(kind), list(items)] if kind in _SEQUENCES:
                if _SCALARS.issuperset(map(type, items)):
                    return _SEQUENCES[kind](items)
                return _SEQUENCES[kind](self.read(one, inner) for one in items)
            case [int(kind), list(pairs)] if kind == _DICT:
                return {self.read(k, inner): self.read(v, inner) for k, v in pairs}
            case [int(kind), int(number)] if kind == _ARRAY and number >= 0:
                return self._arrays[number]
            case [int(kind), str(name), value] if kind == _ENUM:
                return self._class(name, Enum)(value)
            case [int(kind), str(name), dict(content)] if kind == _DATACLASS:
                return self._dataclass(name, content, inner)
        raise ValueError(f"{str(tree)[:80]} has no meaning here")

    def _dataclass(self, name: str, content: dict[str, Any], depth: int) -> Any:
        found: Any = self._class(name, object)
        if not hasattr(found, "__dataclass_fields__"):
            raise ValueError(f"{name} is not a dataclass")
        read = {field: self.read(value, depth) for field, value in content.items()}
        for field, hint in get_hints(found).items():
            if field not in read:
                raise ValueError(f"{name}: {field} is missing")
            if not fits(read[field], hint):
                raise ValueError(f"{name}: {field} is not of type {hint}")
        return found(**read)

    def _class(self, name: str, kind: type) -> Any:
        module = name.partition(":")[0]
        ours = module == CONTRACT or module.startswith(f"{CONTRACT}.")
        packages = self._packages
        if not ours and packages is not None and module.partition(".")[0] not in packages:
            raise ValueError(f"{name} belongs to none of {sorted(packages)}")
        found = _found(name)
        if not issubclass(found, kind):
            raise ValueError(f"{name} is no {kind.__name__}")
        return found


@cache
def _found(name: str) -> type:
    """The class of this name, in the module that defines it."""
    module, _, attribute = name.partition(":")
    found = getattr(sys.modules.get(module) or import_module(module), attribute)
    if not isinstance(found, type) or _name(found) != name:
        raise ValueError(f"{name} is not a class of that module")
    return found


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
