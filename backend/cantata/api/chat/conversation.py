"""A request's messages -> the contract's, with every file loaded and decoded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from cantata.api.chat.messages import (
    AssistantMessage,
    InputAudio,
    InputAudioAddress,
    InputImage,
    InputPart,
    InputTextPart,
    InputVideo,
    MessageBody,
    ToolMessage,
)
from cantata.api.chat.transcripts import Transcripts
from cantata.contract.data.chat import Message, MessagePart, Modality, Role, TextPart, ToolCall
from cantata.contract.data.errors import InvalidRequest
from cantata.media.request_media import RequestMedia

MAX_MEDIA_PARTS = 64
"""Most files in all messages together."""
MAX_CHARACTERS = 1_000_000
"""Most characters of text in all messages together, including transcripts of earlier answers."""

_MODALITIES = {
    "text": Modality.TEXT,
    "input_audio": Modality.AUDIO,
    "audio_url": Modality.AUDIO,
    "image_url": Modality.IMAGE,
    "video_url": Modality.VIDEO,
}
_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}


class MessageReader(Protocol):
    """A model, as far as messages are concerned."""

    @property
    def name(self) -> str: ...

    @property
    def takes(self) -> frozenset[Modality]: ...

    @property
    def calls_tools(self) -> bool: ...


def check_messages(
    messages: Sequence[MessageBody], model: MessageReader, transcripts: Transcripts
) -> None:
    """Reject what the model does not take, and too much of it, before any file is loaded. Raises
    InvalidRequest: names the part."""
    _check_parts(messages, model)
    _check_calls(messages, model)
    characters = sum(_count_characters(body, i, transcripts) for i, body in enumerate(messages))
    if characters > MAX_CHARACTERS:
        raise InvalidRequest(
            f"messages have {characters} characters of text; at most {MAX_CHARACTERS} are read",
            "messages",
        )


def _check_calls(messages: Sequence[MessageBody], model: MessageReader) -> None:
    known: set[str] = set()
    for i, body in enumerate(messages):
        if isinstance(body, AssistantMessage) and body.tool_calls:
            where = f"messages[{i}].tool_calls"
            known |= {call.id for call in body.tool_calls}
        elif isinstance(body, ToolMessage):
            where = f"messages[{i}].role"
            if body.tool_call_id not in known:
                raise InvalidRequest(
                    f"messages[{i}].tool_call_id: no earlier message has a tool call with the id "
                    f"{body.tool_call_id!r}",
                    f"messages[{i}].tool_call_id",
                )
        else:
            continue
        if not model.calls_tools:
            raise InvalidRequest(f"{where}: {model.name} cannot call tools", where)


def _check_parts(messages: Sequence[MessageBody], model: MessageReader) -> None:
    media_parts = 0
    for where, part in _iterate_parts(messages):
        modality = _MODALITIES[part.type]
        if modality not in model.takes:
            supported = ", ".join(one for one in Modality if one in model.takes)
            raise InvalidRequest(
                f"{where}.type is {part.type!r}, but {model.name} takes no {modality}; "
                f"it takes: {supported}",
                f"{where}.type",
            )
        media_parts += modality is not Modality.TEXT
        if media_parts > MAX_MEDIA_PARTS:
            raise InvalidRequest(
                f"{where}: the messages have more than {MAX_MEDIA_PARTS} files", where
            )


async def read_messages(
    messages: Sequence[MessageBody],
    media: RequestMedia,
    transcripts: Transcripts,
    *,
    films: bool = False,
) -> tuple[Message, ...]:
    """The conversation; `films`: with the sound of its videos.

    Raises:
        InvalidRequest: names the part that cannot be used.
        Overloaded: there is no memory for its files now.
    """
    try:
        async with asyncio.timeout(media.work_s):
            return tuple(
                [
                    Message(
                        _ROLES[body.role],
                        await _read(body, f"messages[{i}]", media, transcripts, films),
                        _collect_calls(body),
                    )
                    for i, body in enumerate(messages)
                ]
            )
    except TimeoutError:
        raise InvalidRequest(
            f"the files in messages take longer than {media.work_s:g} s to load and decode; "
            "send fewer or smaller ones",
            "messages",
        ) from None


def count_pictures(messages: Sequence[MessageBody]) -> int:
    return sum(isinstance(part, InputImage) for _, part in _iterate_parts(messages))


def _iterate_parts(messages: Sequence[MessageBody]) -> Sequence[tuple[str, InputPart]]:
    """All parts, each with its path in the body."""
    return [
        (f"messages[{i}].{field}[{j}]", part)
        for i, body in enumerate(messages)
        for field, parts in (("content", body.content), ("images", _collect_made_pictures(body)))
        if isinstance(parts, list)
        for j, part in enumerate(parts)
    ]


def _collect_made_pictures(body: MessageBody) -> list[InputImage]:
    """The pictures of an earlier answer."""
    return body.images or [] if isinstance(body, AssistantMessage) else []


def _count_characters(body: MessageBody, number: int, transcripts: Transcripts) -> int:
    called = sum(len(call.arguments) for call in _collect_calls(body))
    match body.content:
        case str(text):
            return called + len(text)
        case list(parts):
            return called + sum(len(part.text) for part in parts if isinstance(part, InputTextPart))
    return called + len(_find_transcript(body, f"messages[{number}]", transcripts))


def _collect_calls(body: MessageBody) -> tuple[ToolCall, ...]:
    sent = body.tool_calls or () if isinstance(body, AssistantMessage) else ()
    return tuple(ToolCall(call.function.name, call.function.arguments) for call in sent)


def _find_transcript(body: MessageBody, where: str, transcripts: Transcripts) -> str:
    """The text of an assistant's message without content: a spoken answer's transcript; empty if it
    only called tools or was a picture."""
    assert isinstance(body, AssistantMessage)
    if body.audio is None and (body.tool_calls or body.images):
        return ""
    if body.audio is None:
        raise InvalidRequest(
            f"{where}.content is required, or {where}.audio for an answer that was spoken",
            f"{where}.content",
        )
    return transcripts.find(body.audio.id, f"{where}.audio.id")


async def _read(
    body: MessageBody, where: str, media: RequestMedia, transcripts: Transcripts, films: bool
) -> tuple[MessagePart, ...]:
    parts = await _build_message_parts(body, where, media, transcripts, films)
    pictures = [
        await _read_part(part, f"{where}.images[{j}].{part.type}", media, films)
        for j, part in enumerate(_collect_made_pictures(body))
    ]
    return *parts, *pictures


async def _build_message_parts(
    body: MessageBody, where: str, media: RequestMedia, transcripts: Transcripts, films: bool
) -> tuple[MessagePart, ...]:
    match body.content:
        case "" if _collect_made_pictures(body):
            return ()
        case str(text):
            return (TextPart(text),)
        case list(parts):
            return tuple(
                [
                    await _read_part(part, f"{where}.content[{j}].{part.type}", media, films)
                    for j, part in enumerate(parts)
                ]
            )
    words = _find_transcript(body, where, transcripts)
    return (TextPart(words),) if words else ()


async def _read_part(part: InputPart, param: str, media: RequestMedia, films: bool) -> MessagePart:
    match part:
        case InputTextPart():
            return TextPart(part.text)
        case InputAudio():
            return await media.audio(part.input_audio.data, param)
        case InputAudioAddress():
            return await media.load_audio(part.audio_url.url, param)
        case InputImage():
            low = part.image_url.detail == "low"
            return await media.load_image(part.image_url.url, param, low=low)
        case InputVideo():
            return await media.load_video(part.video_url.url, param, with_sound=films)
