"""What the OpenAPI document says of bodies that FastAPI does not make."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from cantata.audio.formats import AudioFormat

Responses = dict[int | str, dict[str, Any]]


def answers(*media_types: str) -> Responses:
    """Success is bytes or text of one of these types."""
    body = {"schema": {"type": "string", "format": "binary"}}
    return {200: {"content": dict.fromkeys(media_types, body)}}


def sound(formats: Iterable[AudioFormat], *others: str) -> Responses:
    """Success is sound in one of these formats, or one of the other media types."""
    return answers(*(one.media_type for one in formats), *others)


def errors_as(body: type[BaseModel]) -> Responses:
    """Every error has this body. Saying so also keeps FastAPI's own 422, which is never sent, out
    of the document."""
    return {status: {"model": body} for status in ("4XX", "5XX")}
