"""Reads typed values from third-party JSON, with errors that give the location."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import msgspec

from cantata.contract.data.errors import ConfigError

T = TypeVar("T", int, float, str, bool)
StructT = TypeVar("StructT", bound=msgspec.Struct)
Size = Annotated[int, msgspec.Meta(ge=1)]
"""The type of a struct's field that is at least 1."""


class JsonFields:
    """One JSON object of a file. Unknown keys are ignored, because the format is not ours. `where`:
    the file and the path in it, for messages."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = values
        self.where = where

    @property
    def values(self) -> Mapping[str, Any]:
        return self._values

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        """Return a value of this kind; integers count as floats. Raises ConfigError: the value is
        missing without a default, or is of another kind."""
        value = self._values.get(key)
        if value is None:
            if default is None:
                raise ConfigError(f"{self.where}: {key} is missing")
            return default
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise ConfigError(f"{self.where}: {key} must be {kind.__name__}, not {value!r}")
        return value

    def expect(self, key: str, *valid: T, default: T | None = None) -> T:
        """Return a value of which only these are served. Raises ConfigError: the value is missing
        without a default, or is another."""
        value = self.get(key, type(valid[0]), default)
        if value not in valid:
            raise ConfigError(
                f"{self.where}: {key} {_show(value)} is not served; "
                f"valid: {', '.join(map(_show, valid))}"
            )
        return value

    def read(self, kind: type[StructT], default: StructT | None = None) -> StructT:
        """Return the object as a struct, whose fields name the keys; null is as no value.

        Args:
            kind: of the struct; a `ValueError` of its `__post_init__` says what contradicts.
            default: for keys that are not there.

        Raises:
            ConfigError: a value is missing without a default, or is not what its field takes.
        """
        values = _drop_nulls(self._values)
        if default is not None:
            values = msgspec.to_builtins(default) | values
        try:
            return msgspec.convert(values, kind)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{self.where}: {_explain(str(error), values, kind)}") from error

    def size(self, key: str, default: int | None = None) -> int:
        """Return an integer of at least 1; raises as `get`."""
        value = self.get(key, int, default)
        if value < 1:
            raise ConfigError(f"{self.where}: {key} must be at least 1, not {value}")
        return value

    def integers(self, key: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Return a list of integers. Raises ConfigError: the list is missing without a default, or
        is not a list of integers."""
        if default is not None and self._values.get(key) is None:
            return default
        value = self._values.get(key)
        if not isinstance(value, list) or any(type(item) is not int for item in value):
            raise ConfigError(f"{self.where}: {key} must be a list of integers, not {value!r}")
        return tuple(value)

    def numbers(self, key: str, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """Return a list of numbers; integers count as floats. Raises ConfigError: the list is
        missing without a default, or holds something else."""
        if default is not None and self._values.get(key) is None:
            return default
        value = self._values.get(key)
        if not isinstance(value, list) or any(type(item) not in (int, float) for item in value):
            raise ConfigError(f"{self.where}: {key} must be a list of numbers, not {value!r}")
        return tuple(float(item) for item in value)

    def strings(self, key: str) -> tuple[str, ...]:
        """Return a list of strings. Raises ConfigError: the list is missing or holds something
        else."""
        value = self._values.get(key)
        if not isinstance(value, list) or any(type(item) is not str for item in value):
            raise ConfigError(f"{self.where}: {key} must be a list of strings, not {value!r}")
        return tuple(value)

    def integer_lists(
        self, key: str, default: tuple[tuple[int, ...], ...]
    ) -> tuple[tuple[int, ...], ...]:
        """Return a list of lists of integers. Raises ConfigError: the value is something else."""
        value = self._values.get(key)
        if value is None:
            return default
        lists = isinstance(value, list) and all(isinstance(inner, list) for inner in value)
        if not lists or any(type(item) is not int for inner in value for item in inner):
            raise ConfigError(f"{self.where}: {key} must be lists of integers, not {value!r}")
        return tuple(tuple(inner) for inner in value)

    def items(self, key: str) -> Mapping[str, Any]:
        """Return a nested object's entries, empty if there is none. Raises ConfigError: the value
        is not an object."""
        value = self._values.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ConfigError(f"{self.where}: {key} must be an object, not {value!r}")
        return value

    def section(self, key: str) -> JsonFields:
        """Return a nested object; raises as `items`."""
        return JsonFields(self.items(key), f"{self.where}: {key}")

    def sections(self, key: str) -> tuple[JsonFields, ...]:
        """Return a list of nested objects. Raises ConfigError: the list is missing or holds
        something else."""
        value = self._values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise ConfigError(f"{self.where}: {key} must be a list of objects, not {value!r}")
        return tuple(
            JsonFields(item, f"{self.where}: {key}[{index}]") for index, item in enumerate(value)
        )


def _show(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _drop_nulls(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _drop_nulls(value) if isinstance(value, dict) else value
        for key, value in values.items()
        if value is not None
    }


def _explain(message: str, values: Any, kind: Any) -> str:
    """What msgspec says of a value, in the words of `JsonFields`."""
    fault, _, path = message.partition(" - at `$")
    steps = re.findall(r"[^.\[\]`]+", path)
    place = re.sub(r": (\d+)", r"[\1]", ": ".join(steps))
    section = f"{place}: " if place else ""
    if missing := re.fullmatch("Object missing required field `(.+)`", fault):
        return f"{section}{missing[1]} is missing"
    if unknown := re.fullmatch("Object contains unknown field `(.+)`", fault):
        for step in steps:
            kind = get_args(kind)[0] if step.isdigit() else _list_fields(kind)[step]
        return f"{section}unknown {unknown[1]}; valid keys: {', '.join(_list_fields(kind))}"
    expected = re.fullmatch("Expected `(.+?)`( >= .+?)?(?:, got .+)?", fault)
    if expected is None:
        return f"{section}{fault}"
    for step in steps:
        values = values[int(step) if isinstance(values, list) else step]
    wanted = {"array": "a list", "object": "an object"}.get(expected[1], expected[1])
    if expected[2]:
        wanted = expected[2].replace(" >= ", "at least ")
    return f"{place} must be {wanted}, not {values!r}"


def _list_fields(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}


def read_json(path: Path) -> JsonFields:
    """Return the object in a JSON file. Raises ConfigError: the file is missing, is not JSON, or
    holds no object."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: holds no JSON object")
    return JsonFields(values, str(path))
