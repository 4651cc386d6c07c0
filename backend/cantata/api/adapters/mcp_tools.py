"""The tools of MCP: what they take, which routes they call, and what they answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlencode, urlsplit

from mcp_types import AudioContent, ContentBlock, ImageContent, TextContent
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from cantata.api.access.security import get_key_label
from cantata.api.adapters.mcp_calls import call_route
from cantata.api.context import ApiContext
from cantata.api.images.body import Prompt
from cantata.api.jobs.opening import get_file_store
from cantata.api.schemas import MAX_BATCH_INPUT_CHARACTERS, Name, Seed, Speed, Text
from cantata.contract.data.errors import InvalidRequest

MAX_LINK_CHARACTERS = 2000
"""Longer addresses are cut by some programs."""
_FILES = "/v1/files/"
_FORMATS = Literal["mp3", "wav", "opus", "flac"]

Content = list[ContentBlock]


class ToolInput(BaseModel):
    """A tool's arguments. Unknown ones are refused: whoever calls reads the refusal, and corrects
    itself."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class SpeakInput(ToolInput):
    """Of `speak`."""

    text: Annotated[Text, Field(min_length=1, max_length=MAX_BATCH_INPUT_CHARACTERS)]
    voice: Name | None = Field(None, description="A voice of list_voices; else the model's own.")
    model: Name | None = Field(None, description="A served model; else the default.")
    speed: Speed = Field(1.0, description="1 is the voice's own pace, 2 twice as fast.")
    instructions: Text | None = Field(
        None, description="How to say it, in words, for models that follow such directions."
    )
    seed: Seed | None = Field(None, description="The same seed gives the same samples.")
    format: _FORMATS = "mp3"


class ListVoicesInput(ToolInput):
    """Of `list_voices`."""

    model: Name | None = Field(None, description="Only the voices of this model.")


class TranscribeInput(ToolInput):
    """Of `transcribe`: one of two recordings."""

    audio: Text | None = Field(
        None, min_length=1, description="The recording's file in base64, in any usual format."
    )
    file: Name | None = Field(
        None,
        description=f"Instead of audio: a file that was uploaded to this server with POST "
        f"{_FILES[:-1]} (purpose user_data), by its id or address.",
    )
    model: Name | None = Field(None, description="A served model; else the first that listens.")
    language: Name | None = Field(None, description="What is spoken, such as en; else found out.")
    prompt: Text | None = Field(None, description="Names and words that may occur.")
    format: Literal["text", "srt", "vtt"] = "text"


class DrawToolInput(ToolInput):
    """Of `draw`."""

    prompt: Prompt
    model: Name | None = Field(None, description="A served model; else the first that draws.")
    size: Name = Field("auto", description="WIDTHxHEIGHT in pixels; auto: the model's own.")
    seed: Seed | None = Field(None, description="The same seed gives the same picture.")


@dataclass(frozen=True, slots=True)
class McpTool:
    name: str
    title: str
    description: str
    arguments: type[ToolInput]
    call: Callable[[Request, Any], Awaitable[Content]]
    """Takes the client's request, and checked arguments; errors as of `call_route`, and
    InvalidRequest."""


def list_tools(context: ApiContext) -> list[McpTool]:
    """The tools that the served models allow. Raises NotReady: no model is served yet."""
    context.lifecycle.check()
    service, tools = context.service, list[McpTool]()
    if service.models:
        default = service.default_model
        names = _join([default, *(name for name in service.models if name != default)])
        tools += [
            McpTool(
                "speak",
                "Speak a text",
                f"Says a text aloud and returns the sound. Models, the default first: {names}.",
                SpeakInput,
                _speak,
            ),
            McpTool(
                "list_voices",
                "List voices",
                "Lists the voices that speak can use, each with its model.",
                ListVoicesInput,
                _list_voices,
            ),
        ]
    if service.transcription_models:
        tools.append(
            McpTool(
                "transcribe",
                "Write down speech",
                "Writes down what is said in a recording, as text or subtitles. Models: "
                f"{_join(service.transcription_models)}.",
                TranscribeInput,
                _transcribe,
            )
        )
    painters = [one.name for one in service.image_models.values() if one.limits.min_references == 0]
    if painters:
        tools.append(
            McpTool(
                "draw",
                "Draw a picture",
                f"Draws a picture from a description. Models: {_join(painters)}.",
                DrawToolInput,
                _draw,
            )
        )
    return tools


def _join(names: Iterable[str]) -> str:
    return ", ".join(names)


async def _speak(request: Request, sent: SpeakInput) -> Content:
    body = {
        "input": sent.text,
        "response_format": sent.format,
        **sent.model_dump(exclude={"text", "format"}, exclude_none=True),
    }
    answer = await call_route(request, "POST", "/v1/audio/speech", body=body)
    sound = base64.b64encode(answer.body).decode("ascii")
    content: Content = [AudioContent(type="audio", data=sound, mime_type=answer.media_type)]
    notes = []
    if ignored := answer.headers.get("x-ignored"):
        notes.append(f"This model ignores: {ignored}.")
    if link := _link_to_page(request, sent):
        notes.append(f"To hear it in a browser: {link}")
    if notes:
        content.append(TextContent(type="text", text="\n".join(notes)))
    return content


def _link_to_page(request: Request, sent: SpeakInput) -> str | None:
    """The address of the page with the same settings, which gives the same samples; None if no page
    is served, or the address would be too long."""
    if not any(getattr(route, "path", None) == "/" for route in request.app.router.routes):
        return None
    fields = sent.model_dump(exclude={"format"}, exclude_none=True, exclude_defaults=True)
    link = f"{request.base_url}?{urlencode(fields)}"
    return link if len(link) <= MAX_LINK_CHARACTERS else None


async def _list_voices(request: Request, sent: ListVoicesInput) -> Content:
    query = sent.model_dump(exclude_none=True)
    answer = await call_route(request, "GET", "/v1/audio/voices", query=query)
    shown = ("id", "name", "description", "gender", "model", "kind")
    voices = [
        {name: voice[name] for name in shown if voice.get(name)}
        for voice in json.loads(answer.body)["voices"]
    ]
    return [TextContent(type="text", text=json.dumps({"voices": voices}, ensure_ascii=False))]


async def _transcribe(request: Request, sent: TranscribeInput) -> Content:
    if (sent.audio is None) == (sent.file is None):
        raise InvalidRequest("give either audio or file", "audio")
    path = "/v1/audio/transcriptions"
    fields = {
        "response_format": sent.format,
        **sent.model_dump(include={"model", "language", "prompt"}, exclude_none=True),
    }
    if sent.file is None:
        body = {**fields, "input_audio": {"data": sent.audio}}
        answer = await call_route(request, "POST", path, body=body)
    else:
        store = get_file_store(request.app.state.context)
        kept = await store.find(_read_file_id(request, sent.file), get_key_label(request.scope))
        with store.find_path(kept.id).open("rb") as file:
            answer = await call_route(request, "POST", path, form=fields, files={"file": file})
    return [TextContent(type="text", text=answer.body.decode().strip())]


def _read_file_id(request: Request, named: str) -> str:
    """The id in an id, a path or an address of a kept file. Raises InvalidRequest: it is an address
    elsewhere, or not of a file."""
    address = urlsplit(named)
    if not address.scheme and "/" not in named:
        return named
    here = not address.netloc or address.netloc.lower() == request.url.netloc.lower()
    if not here or not address.path.startswith(_FILES):
        raise InvalidRequest(
            f"file: {named[:100]!r} is not a file of this server, which fetches nothing from "
            f"elsewhere; upload it with POST {_FILES[:-1]}, or send it as audio",
            "file",
        )
    return address.path.removeprefix(_FILES).removesuffix("/content")


async def _draw(request: Request, sent: DrawToolInput) -> Content:
    body = sent.model_dump(exclude_none=True)
    answer = await call_route(request, "POST", "/v1/images/generations", body=body)
    picture = json.loads(answer.body)["data"][0]
    return [
        ImageContent(type="image", data=picture["b64_json"], mime_type="image/png"),
        TextContent(type="text", text=f"Drawn with the seed {picture['seed']}."),
    ]
