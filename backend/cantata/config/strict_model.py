"""The base of all that is read from a deployment file, and its mistakes in words."""

from __future__ import annotations

from collections.abc import Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError


class StrictModel(BaseModel):
    """Unknown keys are errors, values are not coerced, instances are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


KIND = "kind"
"""The key that chooses between blocks."""


def explain(error: ValidationError, model: type[BaseModel], where: str) -> str:
    """Describe every mistake on a line, then what is valid where they are. `where`: the file, and
    the place in it."""
    problems = error.errors()
    lines = []
    for problem in problems:
        key = ".".join(str(part) for part in problem["loc"]) or "(all)"
        lines.append(f"{where}: {key}: {problem['msg']} (got {problem['input']!r})")
    valid = dict.fromkeys(list_valid_keys(model, problem["loc"]) for problem in problems)
    return "\n".join([*lines, *(f"{where}: {one}" for one in valid)])


def list_keys(model: type[BaseModel]) -> str:
    return ", ".join(model.model_fields)


def list_valid_keys(model: type[BaseModel], place: Sequence[int | str]) -> str:
    """List the keys of the innermost block that a place lies in, or the kinds that it may have.
    `place`: keys from there, and the kind of a block that has several."""
    path: list[str] = []
    blocks = [model]
    for part in place:
        if len(blocks) > 1:
            blocks = [block for block in blocks if _get_kind(block) == part]
            continue
        inner = _blocks_in(blocks[0], str(part))
        if not inner:
            break
        blocks = inner
        path.append(str(part))
    of = f" of {'.'.join(path)}" if path else ""
    if len(blocks) > 1:
        return f"valid kinds{of}: {', '.join(map(_get_kind, blocks))}"
    return f"valid keys{of}: {list_keys(blocks[0])}"


def _blocks_in(model: type[BaseModel], key: str) -> list[type[BaseModel]]:
    """Which blocks may stand under a key; none if it is unknown, or has a plain value."""
    field = model.model_fields.get(key)
    return [] if field is None else _list_blocks(field.annotation)


def _list_blocks(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) not in (Union, UnionType, Annotated):
        return []
    return [block for part in get_args(annotation) for block in _list_blocks(part)]


def _get_kind(block: type[BaseModel]) -> str:
    kind: str = get_args(block.model_fields[KIND].annotation)[0]
    return kind
