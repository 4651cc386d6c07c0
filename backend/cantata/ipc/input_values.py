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
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray


@cache
def get_hints(kind: type) -> Mapping[str, Any]:
    names = getattr(kind, "__dataclass_fields__", {})
    return {name: hint for name, hint in get_type_hints(kind).items() if name in names}


def fits(value: object, hint: Any) -> bool:
    """Whether a value may stand where the annotation does. Raises TypeError: the annotation is not
    one of plain data."""
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


CONTRACT = "cantata.contract.data"
"""Its dataclasses may stand in any model's."""
_MAX_DEPTH = 16
_TUPLE, _LIST, _DICT, _ARRAY, _DATACLASS, _ENUM = range(6)
_SEQUENCES: Mapping[int, Callable[[Any], Any]] = {_TUPLE: tuple, _LIST: list}
_SCALARS = frozenset({type(None), bool, int, float, str, bytes})
"""A prompt is a sequence of thousands of these, which are not looked at one by one."""


def flatten(value: object) -> tuple[Any, tuple[NDArray[Any], ...]]:
    """A stage's input as a tree, and the arrays that the tree numbers. Raises TypeError: it holds
    something that a stage's input may not hold."""
    arrays: list[NDArray[Any]] = []
    return _flatten_value(value, arrays), tuple(arrays)


def _flatten_value(value: object, arrays: list[NDArray[Any]]) -> Any:
    match value:
        case Enum():
            return [_ENUM, _name_type(type(value)), value.value]
        case None | bool() | int() | float() | str() | bytes() if not isinstance(value, np.generic):
            return value
        case tuple() | list():
            kind = _TUPLE if isinstance(value, tuple) else _LIST
            if _SCALARS.issuperset(map(type, value)):
                return [kind, list(value)]
            return [kind, [_flatten_value(one, arrays) for one in value]]
        case Mapping():
            pairs = value.items()
            return [
                _DICT,
                [[_flatten_value(k, arrays), _flatten_value(v, arrays)] for k, v in pairs],
            ]
        case np.ndarray():
            arrays.append(value)
            return [_ARRAY, len(arrays) - 1]
        case _ if is_dataclass(value) and not isinstance(value, type):
            content = {
                one.name: _flatten_value(getattr(value, one.name), arrays) for one in fields(value)
            }
            return [_DATACLASS, _name_type(type(value)), content]
    raise TypeError(f"a {type(value).__name__} in a stage's input cannot go to another machine")


def unflatten(
    tree: object, arrays: Sequence[NDArray[Any]], packages: Collection[str] | None
) -> Any:
    """The stage's input from which `flatten` made a tree.

    Args:
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
                return self._find_class(name, Enum)(value)
            case [int(kind), str(name), dict(content)] if kind == _DATACLASS:
                return self._build_dataclass(name, content, inner)
        raise ValueError(f"{str(tree)[:80]} has no meaning here")

    def _build_dataclass(self, name: str, content: dict[str, Any], depth: int) -> Any:
        found: Any = self._find_class(name, object)
        if not hasattr(found, "__dataclass_fields__"):
            raise ValueError(f"{name} is not a dataclass")
        read = {field: self.read(value, depth) for field, value in content.items()}
        for field, hint in get_hints(found).items():
            if field not in read:
                raise ValueError(f"{name}: {field} is missing")
            if not fits(read[field], hint):
                raise ValueError(f"{name}: {field} is not of type {hint}")
        return found(**read)

    def _find_class(self, name: str, kind: type) -> Any:
        module = name.partition(":")[0]
        ours = module == CONTRACT or module.startswith(f"{CONTRACT}.")
        packages = self._packages
        if not ours and packages is not None and module.partition(".")[0] not in packages:
            raise ValueError(f"{name} belongs to none of {sorted(packages)}")
        found = _find_type(name)
        if not issubclass(found, kind):
            raise ValueError(f"{name} is no {kind.__name__}")
        return found


@cache
def _find_type(name: str) -> type:
    """The class of this name, in the module that defines it."""
    module, _, attribute = name.partition(":")
    found = getattr(sys.modules.get(module) or import_module(module), attribute)
    if not isinstance(found, type) or _name_type(found) != name:
        raise ValueError(f"{name} is not a class of that module")
    return found


def _name_type(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
