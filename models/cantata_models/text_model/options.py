"""The section `options` of a text model's deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from cantata.contract.data.errors import ConfigError


class TextModelOptions(BaseModel):
    """How answers are read. A parser's name is one of vLLM's; None: by the chat template, or none;
    `off`: none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool_parser: str | None = None
    """Finds calls of tools."""
    reasoning_parser: str | None = None
    """Finds the thought before an answer."""


def read_options(values: Mapping[str, Any]) -> TextModelOptions:
    """Check them.

    Raises:
        ConfigError: names what is wrong.
    """
    try:
        return TextModelOptions.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        valid = sorted(TextModelOptions.model_fields)
        raise ConfigError(f"options.{where}: {first['msg']}; valid keys: {valid}") from error
