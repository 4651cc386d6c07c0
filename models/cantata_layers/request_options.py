"""Validates a request's model-specific fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from cantata.contract.data.errors import InvalidRequest

Options = TypeVar("Options", bound=BaseModel)


def parse_fields(values: Mapping[str, Any], kind: type[Options]) -> Options:
    """Return the fields as a model's own options.

    Raises:
        InvalidRequest: names the first wrong field and what it may be.
    """
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = str(problem["loc"][0])
        shown = repr(problem["input"])[:80]
        raise InvalidRequest(f"{field}: {problem['msg']}, not {shown}", field) from None
