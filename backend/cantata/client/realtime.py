"""A spoken conversation with a running server, over its realtime WebSocket."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np
import websockets.asyncio.client as sockets
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from cantata.client.speech import Pcm, ServerError, authorization, server_error

RATE = 24_000
"""Hz, of the sound in both directions, which is mono."""
_PATH = "/v1/realtime"


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
    """More of the answer's words."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerSound:
    """More of the answer's sound."""

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


RealtimeEvent = (
    SpeechStarted | Heard | AnswerStarted | AnswerText | AnswerSound | AnswerEnded | Complaint
)


class RealtimeSession:
    """One conversation."""

    def __init__(self, socket: sockets.ClientConnection) -> None:
        self._socket = socket

    async def configure(
        self, instructions: str | None, voice: str | None, *, interrupts: bool
    ) -> None:
        """Set the session up.

        Args:
            instructions: what the model is to be and do.
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
        await self._send("session.update", session=session)
        async for event in self._receive():
            if event["type"] == "session.updated":
                return
            if event["type"] == "error":
                raise server_error(event)

    async def hear(self, pcm: bytes) -> None:
        """Send sound of the microphone: mono s16le at `RATE`."""
        await self._send("input_audio_buffer.append", audio=base64.b64encode(pcm).decode())

    async def stop_answer(self) -> None:
        """Make no more of the present answer, if there is one."""
        await self._send("response.cancel")

    async def truncate(self, item_id: str, heard_s: float) -> None:
        """Tell how much of an answer was heard, so that the model knows what was not."""
        await self._send(
            "conversation.item.truncate",
            item_id=item_id,
            content_index=0,
            audio_end_ms=int(heard_s * 1000),
        )

    async def events(self) -> AsyncIterator[RealtimeEvent]:
        """What happens, until the connection ends.

        Raises:
            ServerError: the connection broke off.
        """
        async for event in self._receive():
            read = _read(event)
            if read is not None:
                yield read

    async def _send(self, kind: str, **fields: Any) -> None:
        try:
            await self._socket.send(json.dumps({"type": kind, **fields}))
        except ConnectionClosed as error:
            raise ServerError(f"the conversation broke off ({error})") from error

    async def _receive(self) -> AsyncIterator[dict[str, Any]]:
        try:
            async for message in self._socket:
                yield json.loads(message)
        except ConnectionClosed as error:
            raise ServerError(f"the conversation broke off ({error})") from error


@asynccontextmanager
async def open_conversation(
    server: str, model: str | None, api_key: str | None
) -> AsyncIterator[RealtimeSession]:
    """A conversation with the server at this HTTP address.

    Args:
        server: such as `http://127.0.0.1:8000`.
        model: that speaks or answers; None: the server's first.
        api_key: for a server that requires one.

    Raises:
        ServerError: it cannot be reached, or refuses the connection.
    """
    query = "" if model is None else "?" + urlencode({"model": model})
    address = "ws" + server.removeprefix("http").rstrip("/") + _PATH + query
    try:
        connection = sockets.connect(
            address, compression=None, additional_headers=authorization(api_key), max_size=None
        )
        socket = await connection
    except InvalidStatus as error:
        raise _refusal(server, error) from error
    except (OSError, TimeoutError, InvalidURI, InvalidHandshake) as error:
        raise ServerError(f"{server}: {error}") from error
    async with socket:
        yield RealtimeSession(socket)


def _refusal(server: str, error: InvalidStatus) -> ServerError:
    """The server's own words, where it has any."""
    try:
        return server_error(json.loads(error.response.body or b""))
    except (ValueError, KeyError, TypeError):
        return ServerError(f"{server}: {error}")


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
    return None
