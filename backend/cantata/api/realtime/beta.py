"""Events in the names of the Realtime API's beta, for clients that ask for it.

A client of the beta connects with the header `OpenAI-Beta: realtime=v1` or the subprotocol
`openai-beta.realtime-v1`. Its own events and flat settings are understood in every session; here
are the server's.
"""

from __future__ import annotations

from typing import Any

from pydantic import RootModel
from starlette.datastructures import Headers

from cantata.api.realtime.server_events import ServerEvent

_HEADER, _VERSION = "openai-beta", "realtime=v1"
_SUBPROTOCOL = "openai-beta.realtime-v1"
_TYPES = {
    "response.output_text.delta": "response.text.delta",
    "response.output_text.done": "response.text.done",
    "response.output_audio.delta": "response.audio.delta",
    "response.output_audio.done": "response.audio.done",
    "response.output_audio_transcript.delta": "response.audio_transcript.delta",
    "response.output_audio_transcript.done": "response.audio_transcript.done",
    "conversation.item.added": "conversation.item.created",
}
_NOT_IN_BETA = frozenset(("conversation.item.done",))
_PARTS = {"output_text": "text", "output_audio": "audio"}
_FORMATS = {"audio/pcm": "pcm16", "audio/pcmu": "g711_ulaw", "audio/pcma": "g711_alaw"}


class BetaEvent(RootModel[dict[str, Any]]):
    """An event as the beta has it."""


def asks_for_beta(headers: Headers) -> bool:
    """Whether a handshake asks for the beta's names."""
    versions = [one.strip() for one in headers.get(_HEADER, "").split(",")]
    protocols = [one.strip() for one in headers.get("sec-websocket-protocol", "").split(",")]
    return _VERSION in versions or _SUBPROTOCOL in protocols


def to_beta(event: ServerEvent) -> BetaEvent | None:
    """The event in the beta's names; None: the beta has none such."""
    sent = event.model_dump(mode="json", by_alias=True)
    if sent["type"] in _NOT_IN_BETA:
        return None
    sent["type"] = _TYPES.get(sent["type"], sent["type"])
    if "item" in sent:
        sent["item"] = _convert_item(sent["item"])
    if "part" in sent:
        sent["part"] = _convert_part(sent["part"])
    if "response" in sent:
        sent["response"] = _convert_response(sent["response"])
    if "session" in sent and "audio" in sent["session"]:
        if sent["session"]["type"] == "transcription":
            sent["type"] = f"transcription_{sent['type']}"
        sent["session"] = flatten_session(sent["session"])
    return BetaEvent(sent)


def flatten_session(session: dict[str, Any]) -> dict[str, Any]:
    """A session, as `show_session` has it, in the beta's fields."""
    if session["type"] == "transcription":
        return flatten_transcription_session(session)
    return _flatten_conversation(session)


def flatten_transcription_session(session: dict[str, Any]) -> dict[str, Any]:
    """A transcription session in the beta's fields."""
    received = session["audio"]["input"]
    kept = {key: value for key, value in session.items() if key not in ("audio", "type")}
    return {**kept, **_flatten_input(received)}


def _flatten_input(received: dict[str, Any]) -> dict[str, Any]:
    return {
        "input_audio_format": _name_format(received["format"]),
        "input_audio_transcription": received["transcription"],
        "input_audio_noise_reduction": received["noise_reduction"],
        "turn_detection": received["turn_detection"],
    }


def _convert_item(item: dict[str, Any]) -> dict[str, Any]:
    if "content" not in item:
        return item
    return {**item, "content": [_convert_part(part) for part in item["content"]]}


def _convert_part(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "type": _PARTS.get(part["type"], part["type"])}


def _convert_response(response: dict[str, Any]) -> dict[str, Any]:
    sent = {
        key: value for key, value in response.items() if key not in ("audio", "output_modalities")
    }
    output = response["audio"].get("output", {})
    return {
        **sent,
        "output": [_convert_item(item) for item in response["output"]],
        "modalities": _convert_modalities(response["output_modalities"]),
        "voice": output.get("voice"),
        "output_audio_format": _name_format(output.get("format", {})),
    }


def _flatten_conversation(session: dict[str, Any]) -> dict[str, Any]:
    moved = ("audio", "output_modalities", "type", "max_output_tokens")
    sent = {key: value for key, value in session.items() if key not in moved}
    received, playout = session["audio"]["input"], session["audio"]["output"]
    return {
        **sent,
        "modalities": _convert_modalities(session["output_modalities"]),
        "voice": playout["voice"],
        "speed": playout["speed"],
        "output_audio_format": _name_format(playout["format"]),
        **_flatten_input(received),
        "max_response_output_tokens": session["max_output_tokens"],
    }


def _convert_modalities(modalities: list[str]) -> list[str]:
    return ["text", "audio"] if "audio" in modalities else modalities


def _name_format(sound: dict[str, Any]) -> str:
    return _FORMATS.get(sound.get("type", ""), "pcm16")
