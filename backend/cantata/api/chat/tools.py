"""Tools that a model may call, as clients describe them, and the calls in messages and answers."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from cantata.api.schemas import Name, Text, WireModel

MAX_TOOLS = 128
FunctionName = Annotated[Text, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class Function(WireModel):
    """A tool's name, description and parameters."""

    name: FunctionName
    description: Text | None = None
    parameters: dict[str, Any] | None = None
    """JSON Schema. The model sees it, but may not follow it in a call that it chose to make."""
    strict: bool | None = None
    """Every call follows the schema."""


class Tool(WireModel):
    """A tool that the client runs."""

    type: Literal["function"]
    function: Function

    @property
    def json_text(self) -> str:
        return json.dumps(self.model_dump(exclude_none=True), ensure_ascii=False)


class NamedFunction(WireModel):
    """A tool by its name."""

    name: FunctionName


class NamedTool(WireModel):
    """The tool that an answer calls."""

    type: Literal["function"]
    function: NamedFunction


class CalledFunction(WireModel):
    """A function's name and arguments in a call."""

    name: FunctionName
    arguments: Text
    """JSON as the model wrote it: it may be cut off, or not follow the tool's schema."""


class Call(WireModel):
    """One tool call, of an earlier message or of the answer."""

    id: Name
    type: Literal["function"] = "function"
    function: CalledFunction
