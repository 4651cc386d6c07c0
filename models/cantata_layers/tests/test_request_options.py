"""What clients are told of a model's own request fields is what the model checks."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from cantata.contract.data.errors import InvalidRequest
from cantata_layers.request_options import TopK, field_schemas, parse_fields


class Ink(StrEnum):
    """The colours."""

    BLACK = "black"
    BLUE = "blue"


class Options(BaseModel):
    """One field of each sort that models have."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    steps: Annotated[int, Field(ge=2, le=100)] = 10
    """Of the solver."""
    top_k: TopK | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    ink: Ink | None = None
    """What it
    draws with."""
    mode: Literal["plain", "fine"] | None = None
    interval: tuple[float, float] | None = None
    think: bool = False


def test_each_field_is_described_whole() -> None:
    assert field_schemas(Options) == {
        "steps": {
            "type": "integer",
            "minimum": 2,
            "maximum": 100,
            "default": 10,
            "description": "Of the solver.",
        },
        "top_k": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
        "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "ink": {
            "type": "string",
            "enum": ["black", "blue"],
            "description": "What it draws with.",
        },
        "mode": {"type": "string", "enum": ["plain", "fine"]},
        "interval": {
            "type": "array",
            "prefixItems": [{"type": "number"}, {"type": "number"}],
            "minItems": 2,
            "maxItems": 2,
        },
        "think": {"type": "boolean", "default": False},
    }


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        *(("steps", 101), ("top_k", -1), ("top_k", 10**20), ("top_p", 0), ("ink", "red")),
        *(("mode", "bold"), ("interval", [1])),
    ],
)
def test_what_the_schema_excludes_is_refused_by_name(field: str, bad: Any) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        parse_fields({field: bad}, Options)
    assert refusal.value.param == field
