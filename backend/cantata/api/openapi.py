"""Descriptions of bodies for the OpenAPI document, where FastAPI cannot derive them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from cantata.api.schemas import ErrorBody
from cantata.audio.formats import AudioFormat

Responses = dict[int | str, dict[str, Any]]


def describe_bytes(*media_types: str) -> Responses:
    """Describe a success of bytes or text, in one of these types."""
    body = {"schema": {"type": "string", "format": "binary"}}
    return {200: {"content": dict.fromkeys(media_types, body)}}


def describe_sound(formats: Iterable[AudioFormat]) -> Responses:
    return describe_bytes(*(one.media_type for one in formats))


def describe_events(media_type: str, kinds: Iterable[str]) -> Responses:
    """Describe a success of server-sent events: JSON objects whose `type` is one of these."""
    event = {"type": "object", "properties": {"type": {"enum": [*kinds]}}, "required": ["type"]}
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": event}
    event = {"type": "object", "properties": {"data": data}, "required": ["data"]}
    return {200: {"content": {media_type: {"itemSchema": event}}}}


def merge_responses(*responses: Responses) -> Responses:
    content: dict[str, Any] = {}
    for one in responses:
        content |= one[200]["content"]
    return {200: {"content": content}}


def describe_errors(body: type[BaseModel]) -> Responses:
    """Every error has this body. Saying so also keeps FastAPI's own 422, which is never sent, out
    of the document."""
    return {status: {"model": body} for status in ("4XX", "5XX")}


ERRORS = describe_errors(ErrorBody)
"""Errors of the routes that answer in the protocol's own format."""
