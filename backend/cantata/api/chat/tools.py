"""Tools that a model may call, as clients describe them, and the calls in messages and answers."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from cantata.api.schemas import Name, Text, WireModel

MAX_TOOLS = 128
FunctionName = Annotated[Text, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class Function(WireModel):
    """What a tool is called, and what it takes."""

    name: FunctionName
    description: Text | None = None
    parameters: dict[str, Any] | None = None
    """JSON Schema. The model is told of it, and not held to it."""


class Tool(WireModel):
    """One that the client runs."""

    type: Literal["function"]
    function: Function

    @property
    def json_text(self) -> str:
        """As the model is told of it."""
        return json.dumps(self.model_dump(exclude_none=True), ensure_ascii=False)


class CalledFunction(WireModel):
    """What was called, with what."""

    name: FunctionName
    arguments: Text
    """JSON, as the model wrote it: it may be cut, or not what the tool asked for."""


class Call(WireModel):
    """One call in a message, an earlier one or the answer."""

    id: Name
    type: Literal["function"] = "function"
    function: CalledFunction
