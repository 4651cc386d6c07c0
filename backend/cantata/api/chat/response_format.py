"""What an answer is held to: text, any JSON object, or a JSON Schema."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field

from cantata.api.schemas import Text, WireModel
from cantata.contract.data.chat import JsonFormat
from cantata.contract.data.errors import InvalidRequest

MAX_SCHEMA_CHARACTERS = 100_000


class TextFormat(WireModel):
    """Words."""

    type: Literal["text"]

    def read(self, where: str) -> None:
        """Nothing: any text will do."""


class JsonObjectFormat(WireModel):
    """Any JSON object."""

    type: Literal["json_object"]

    def read(self, where: str) -> JsonFormat:
        """The format in the form that models take."""
        return JsonFormat()


class NamedSchema(WireModel):
    """A JSON Schema."""

    name: Annotated[Text, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    description: Text | None = None
    schema_: dict[str, Any] = Field(default={"type": "object"}, alias="schema")
    strict: bool = False
    """Keywords that cannot be guaranteed are refused."""


class JsonSchemaFormat(WireModel):
    """JSON that follows a schema."""

    type: Literal["json_schema"]
    json_schema: NamedSchema

    def read(self, where: str) -> JsonFormat:
        """The format in the form that models take.

        Args:
            where: the field's path in the body.

        Raises:
            InvalidRequest: the schema is too long.
        """
        schema = self.json_schema
        return read_schema(schema.schema_, schema.strict, f"{where}.json_schema.schema")


ResponseFormat = Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat, Discriminator("type")]


def read_schema(schema: dict[str, Any], strict: bool, where: str) -> JsonFormat:
    """A schema as the model gets it. Raises InvalidRequest: it is too long."""
    text = json.dumps(schema, ensure_ascii=False)
    if len(text) > MAX_SCHEMA_CHARACTERS:
        raise InvalidRequest(
            f"{where} has {len(text)} characters; at most {MAX_SCHEMA_CHARACTERS} are read", where
        )
    return JsonFormat(text, strict)
