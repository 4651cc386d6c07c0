"""The messages of a conversation, as clients send them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from cantata.api.chat.tools import MAX_TOOLS, Call
from cantata.api.schemas import Name, Text, WireModel

MAX_MESSAGES = 1000
MAX_PARTS = 128


def _classify(sent: Any) -> str | None:
    """Tell one text from a list, so that an error is about what was sent."""
    if isinstance(sent, str):
        return "one"
    return "list" if isinstance(sent, list) else None


ONE_OR_LIST = Discriminator(
    _classify,
    custom_error_type="one_or_list",
    custom_error_message="must be a string or a list",
)


class InputTextPart(WireModel):
    """Some text."""

    type: Literal["text"]
    text: Text


class InputAudioFile(WireModel):
    """A sound file."""

    data: str
    """Base64."""
    format: Literal["wav", "mp3"]
    """The format that the client names; the file itself decides."""


class InputAudio(WireModel):
    """Sound."""

    type: Literal["input_audio"]
    input_audio: InputAudioFile


class ImageAddress(WireModel):
    """Where a picture is."""

    url: str
    """`data:image/...;base64,...` or, where the server allows it, an http(s) URL."""
    detail: Literal["auto", "low", "high"] = "auto"


class InputImage(WireModel):
    """A picture."""

    type: Literal["image_url"]
    image_url: ImageAddress


class MediaAddress(WireModel):
    """Where a file is."""

    url: str
    """`data:...;base64,...` or, where the server allows it, an http(s) URL."""


class InputAudioAddress(WireModel):
    """Sound behind a URL. Not part of OpenAI's protocol."""

    type: Literal["audio_url"]
    audio_url: MediaAddress


class InputVideo(WireModel):
    """A video. Not part of OpenAI's protocol."""

    type: Literal["video_url"]
    video_url: MediaAddress


InputPart = Annotated[
    InputTextPart | InputAudio | InputImage | InputAudioAddress | InputVideo, Discriminator("type")
]
TextParts = Annotated[list[InputTextPart], Field(min_length=1, max_length=MAX_PARTS)]
InputParts = Annotated[list[InputPart], Field(min_length=1, max_length=MAX_PARTS)]
TextContent = Annotated[
    Annotated[Text, Tag("one")] | Annotated[TextParts, Tag("list")], ONE_OR_LIST
]
InputContent = Annotated[
    Annotated[Text, Tag("one")] | Annotated[InputParts, Tag("list")], ONE_OR_LIST
]


class SystemMessage(WireModel):
    """Instructions; both roles mean the same."""

    role: Literal["system", "developer"]
    content: TextContent


class UserMessage(WireModel):
    """A message that the model answers."""

    role: Literal["user"]
    content: InputContent


class SpokenAnswer(WireModel):
    """An earlier answer that was spoken."""

    id: Name
    """The `id` of the earlier answer's `message.audio`."""


class AssistantMessage(WireModel):
    """An earlier answer."""

    role: Literal["assistant"]
    content: TextContent | None = None
    audio: SpokenAnswer | None = None
    """Instead of `content`: the spoken answer, which stands for its transcript."""
    images: Annotated[list[InputImage], Field(max_length=MAX_PARTS)] | None = None
    """Pictures of the answer, after `content`. Not part of OpenAI's protocol."""
    tool_calls: Annotated[list[Call], Field(max_length=MAX_TOOLS)] | None = None


class ToolMessage(WireModel):
    """The result of a tool call."""

    role: Literal["tool"]
    content: TextContent
    tool_call_id: Name
    """The `id` of a call in an earlier message."""


MessageBody = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Discriminator("role")
]
