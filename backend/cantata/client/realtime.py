"""A spoken conversation with a running server, over its realtime WebSocket."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from cantata.client.resumable import LOST, RESUMED, ReconnectingSocket
from cantata.client.speech import Pcm, ServerError, server_error

RATE = 24_000
"""Hz, of the sound in both directions, which is mono."""


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The user has begun to speak; no more of the answer comes."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What the user said."""

    text: str
    """Empty where nothing was understood."""


@dataclass(frozen=True, slots=True)
class AnswerStarted:
    """An answer is being made."""


@dataclass(frozen=True, slots=True)
class AnswerText:
    text: str


@dataclass(frozen=True, slots=True)
class AnswerSound:
    item_id: str
    pcm: Pcm
    """[N, 1] at `RATE`."""


@dataclass(frozen=True, slots=True)
class AnswerEnded:
    """The answer is complete, or was stopped."""

    failure: ServerError | None
    """Why it broke off by itself."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """The server did not do what it was asked; the conversation goes on."""

    failure: ServerError


@dataclass(frozen=True, slots=True)
class ConversationInterrupted:
    """The connection is lost, and made again; the conversation goes on where it was."""


@dataclass(frozen=True, slots=True)
class ConversationResumed:
    """It is there again."""


RealtimeEvent = (
    SpeechStarted
    | Heard
    | AnswerStarted
    | AnswerText
    | AnswerSound
    | AnswerEnded
    | Complaint
    | ConversationInterrupted
    | ConversationResumed
)


class RealtimeSession:
    def __init__(self, socket: ReconnectingSocket) -> None:
        self._socket = socket

    async def configure(
        self, instructions: str | None, voice: str | None, *, interrupts: bool
    ) -> None:
        """Set the session up.

        Args:
            voice: that speaks; None: the model's own.
            interrupts: speech of the user stops an answer.

        Raises:
            ServerError: the server refuses one of them.
        """
        form = {"type": "audio/pcm", "rate": RATE}
        turns = {"type": "server_vad", "interrupt_response": interrupts}
        session: dict[str, Any] = {
            "type": "realtime",
            "audio": {
                "input": {"format": form, "transcription": {}, "turn_detection": turns},
                "output": {"format": form} | ({} if voice is None else {"voice": voice}),
            },
        }
        if instructions is not None:
            session["instructions"] = instructions
        await self._socket.send("session.update", session=session)
        async for event in self._socket.receive():
            if event["type"] == "session.updated":
                return
            if event["type"] == "error":
                raise server_error(event)

    async def hear(self, pcm: bytes) -> None:
        """Send sound of the microphone: mono s16le at `RATE`."""
        await self._socket.send("input_audio_buffer.append", audio=base64.b64encode(pcm).decode())

    async def stop_answer(self) -> None:
        """Make no more of the present answer, if there is one."""
        await self._socket.send("response.cancel")

    async def truncate(self, item_id: str, heard_s: float) -> None:
        """Tell how much of an answer was heard, so that the model knows what was not."""
        await self._socket.send(
            "conversation.item.truncate",
            item_id=item_id,
            content_index=0,
            audio_end_ms=int(heard_s * 1000),
        )

    async def events(self) -> AsyncIterator[RealtimeEvent]:
        """What happens, until the server ends the conversation. Raises ServerError: the
        conversation broke off."""
        async for event in self._socket.receive():
            read = _read(event)
            if read is not None:
                yield read


@asynccontextmanager
async def open_conversation(
    server: str, model: str | None, api_key: str | None
) -> AsyncIterator[RealtimeSession]:
    """A conversation with the server at this HTTP address.

    Args:
        server: such as `http://127.0.0.1:8000`.
        model: that speaks or answers; None: the server's first.

    Raises:
        ServerError: it cannot be reached, or refuses the connection.
    """
    socket = ReconnectingSocket(server, model, api_key)
    await socket.connect()
    try:
        yield RealtimeSession(socket)
    finally:
        await socket.close()


def _read(event: dict[str, Any]) -> RealtimeEvent | None:
    """What an event means to somebody who converses; None: nothing."""
    match event["type"]:
        case "input_audio_buffer.speech_started":
            return SpeechStarted()
        case "conversation.item.input_audio_transcription.completed":
            return Heard(event["transcript"].strip())
        case "response.created":
            return AnswerStarted()
        case "response.output_audio_transcript.delta" | "response.output_text.delta":
            return AnswerText(event["delta"])
        case "response.output_audio.delta":
            sound = np.frombuffer(base64.b64decode(event["delta"]), "<i2")[:, None]
            return AnswerSound(event["item_id"], sound)
        case "response.done":
            error = (event["response"].get("status_details") or {}).get("error")
            if error is None:
                return AnswerEnded(None)
            return AnswerEnded(ServerError(error["message"], error["code"]))
        case "error":
            return Complaint(server_error(event))
        case _ if event["type"] == LOST:
            return ConversationInterrupted()
        case _ if event["type"] == RESUMED:
            return ConversationResumed()
    return None
