"""Which JSON Schemas answers can be held to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cantata.contract.data.chat import JsonFormat
from cantata.contract.data.errors import InvalidRequest

PARAM = "response_format.json_schema.schema"
MAX_DEPTH = 64
NOT_HELD = frozenset(
    {
        *("multipleOf", "uniqueItems", "contains", "minContains", "maxContains"),
        *("not", "if", "then", "else", "dependentRequired", "dependentSchemas"),
        *("unevaluatedProperties", "unevaluatedItems"),
    }
)
"""Keywords that xgrammar passes over."""
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Their keys are names, not keywords."""
_VALUES = frozenset({"const", "enum", "default", "examples", "required"})
"""They hold values, not schemas."""


def check_format(wanted: JsonFormat) -> None:
    """Raises InvalidRequest: the schema is nested too deeply, or it is strict and has keywords that
    no grammar holds an answer to."""
    if wanted.schema is None:
        return
    for path, keyword, value in _list_keywords(json.loads(wanted.schema), "", 0):
        if not wanted.strict:
            continue
        if keyword in NOT_HELD or (keyword == "allOf" and len(value) > 1):
            raise InvalidRequest(
                f"{PARAM}: {keyword!r} at {path or '/'} cannot be guaranteed; leave it out, or "
                'send "strict": false',
                PARAM,
            )


def _list_keywords(schema: Any, path: str, depth: int) -> Iterator[tuple[str, str, Any]]:
    """Every keyword with its path and value."""
    if depth > MAX_DEPTH:
        raise InvalidRequest(
            f"{PARAM} is nested more than {MAX_DEPTH} deep at {path[:80]}...", PARAM
        )
    if isinstance(schema, Mapping):
        for keyword, value in schema.items():
            yield path, keyword, value
            if keyword in _VALUES:
                continue
            inner = f"{path}/{keyword}"
            if keyword in _NAMED and isinstance(value, Mapping):
                for name, one in value.items():
                    yield from _list_keywords(one, f"{inner}/{name}", depth + 1)
            else:
                yield from _list_keywords(value, inner, depth + 1)
    elif isinstance(schema, Sequence) and not isinstance(schema, str):
        for number, one in enumerate(schema):
            yield from _list_keywords(one, f"{path}/{number}", depth + 1)
