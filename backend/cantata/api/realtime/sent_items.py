"""Reads items that clients send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from cantata.api.realtime.client_events import SentContent, SentItem
from cantata.api.realtime.conversation import CallOutput, Content, FunctionCall, Item
from cantata.api.realtime.server_events import new_id
from cantata.api.realtime.transcription_feed import TranscriptionFeed
from cantata.contract.data.errors import InvalidRequest, PayloadTooLarge
from cantata.media.loading import Base64Error, decode_base64, split_data_url
from cantata.speech_input.settings import RealtimeSettings

_TODAY = {"text": "output_text", "audio": "output_audio"}
"""Today's names of an assistant's parts, by the beta's."""
_VALID = {
    "user": ("input_text", "input_audio"),
    "system": ("input_text",),
    "assistant": ("output_text", "output_audio"),
}
Role = Literal["user", "assistant", "system"]


def decode_sound(text: str, param: str, settings: RealtimeSettings) -> bytes:
    """Decode base64.

    Raises:
        InvalidRequest: it is not base64.
        PayloadTooLarge: it is more than a message may have.
    """
    max_bytes = settings.max_append_bytes
    if len(text) * 3 // 4 > max_bytes + 2:
        raise PayloadTooLarge(
            f"{param} has {len(text) * 3 // 4} bytes; at most {max_bytes} are accepted in one "
            "message",
            param,
        )
    url = split_data_url(text)
    try:
        return decode_base64(text if url is None else url[2])
    except Base64Error as error:
        raise InvalidRequest(f"{param} is not valid base64: it {error}", param) from None


def build_item(
    sent: SentItem, make_feed: Callable[[bytes], TranscriptionFeed], settings: RealtimeSettings
) -> Item:
    """An item of the conversation; its sound begins to be transcribed.

    Raises:
        InvalidRequest: it has no role or content, or parts that its role cannot have.
        PayloadTooLarge: too much text or sound.
    """
    if sent.type in ("function_call", "function_call_output"):
        return _build_call(sent, settings)
    role: Role | None = sent.role
    if role is None:
        raise InvalidRequest("item.role is required; valid: user, assistant, system", "item.role")
    if not sent.content:
        raise InvalidRequest("item.content is required: at least one part", "item.content")
    for part in sent.content:
        _check(part, role)
    characters = sum(len(part.text or part.transcript or "") for part in sent.content)
    if characters > settings.max_item_characters:
        raise PayloadTooLarge(
            f"item.content has {characters} characters; at most {settings.max_item_characters} are "
            "accepted",
            "item.content",
        )
    content = [_build_content(part, make_feed, settings) for part in sent.content]
    return Item(sent.id or new_id("item"), role, content)


def _build_call(sent: SentItem, settings: RealtimeSettings) -> Item:
    is_output = sent.type == "function_call_output"
    needed = ("call_id", "output") if is_output else ("call_id", "name", "arguments")
    for field in needed:
        if getattr(sent, field) is None:
            raise InvalidRequest(f"item.{field} is required in a {sent.type}", f"item.{field}")
    text = (sent.output if is_output else sent.arguments) or ""
    if len(text) > settings.max_item_characters:
        raise PayloadTooLarge(
            f"item.{needed[-1]} has {len(text)} characters; at most "
            f"{settings.max_item_characters} are accepted",
            f"item.{needed[-1]}",
        )
    call_id, item_id = sent.call_id or "", sent.id or new_id("item")
    if is_output:
        return Item(item_id, "tool", [], call=CallOutput(call_id, text))
    return Item(item_id, "assistant", [], call=FunctionCall(call_id, sent.name or "", text))


def _check(part: SentContent, role: Role) -> None:
    kind = _TODAY.get(part.type, part.type) if role == "assistant" else part.type
    if kind not in _VALID[role]:
        raise InvalidRequest(
            f"an item of the role {role} cannot have a part of the type {part.type}; valid: "
            f"{', '.join(_VALID[role])}",
            "item.content",
        )
    if (part.audio is None) if kind == "input_audio" else (part.text or part.transcript) is None:
        wanted = "audio" if kind == "input_audio" else "text"
        raise InvalidRequest(f"a part of the type {part.type} needs {wanted}", "item.content")


def _build_content(
    part: SentContent, make_feed: Callable[[bytes], TranscriptionFeed], settings: RealtimeSettings
) -> Content:
    if part.type != "input_audio":
        return Content(_TODAY.get(part.type, part.type), part.text or part.transcript or "")
    assert part.audio is not None
    received = make_feed(decode_sound(part.audio, "item.content", settings))
    return Content("input_audio", words=received.words, sound=received.sound)
