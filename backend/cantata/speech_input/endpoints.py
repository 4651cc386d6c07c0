"""Answers and transcripts from servers with an OpenAI-compatible HTTP API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from io import BytesIO
from typing import Any

import httpx
import numpy as np
import soundfile
from pydantic import BaseModel, ValidationError

from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.speech_input.chat import (
    NO_TOOLS,
    ChatDelta,
    ChatFailed,
    ChatMessage,
    ChatTools,
    ToolCallDelta,
)
from cantata.speech_input.settings import Endpoint
from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.transcription import (
    HeardPiece,
    Report,
    TranscriptionFailed,
    UtteranceOptions,
)

_SHOWN = 200
"""Characters of an error's body that are shown."""


def build_client(endpoint: Endpoint, timeout_s: float) -> httpx.AsyncClient:
    """An HTTP client with this endpoint's key.

    Args:
        endpoint: whom it asks; addresses are given in full.
        timeout_s: for each step of an exchange.
    """
    headers = {} if endpoint.key is None else {"authorization": f"Bearer {endpoint.key}"}
    # Reading certificates takes a tenth of a second, in which nothing is sent to anybody.
    secure = endpoint.url.startswith("https:")
    return httpx.AsyncClient(timeout=timeout_s, headers=headers, verify=secure)


def explain(error: Exception) -> str:
    """A failure in one line, without the URL, which may contain a key."""
    if isinstance(error, httpx.HTTPStatusError):
        response = error.response
        shown = response.text[:_SHOWN] if response.is_stream_consumed else ""
        return f"the endpoint answered {response.status_code} {shown}".rstrip()
    if isinstance(error, httpx.TimeoutException):
        return "the endpoint did not answer in time"
    if isinstance(error, httpx.HTTPError):
        return f"the endpoint cannot be reached ({type(error).__name__})"
    return "the endpoint's answer is not in OpenAI's format"


_DATA = "data:"
_END = "[DONE]"


class _Function(BaseModel):
    name: str | None = None
    arguments: str | None = None


class _Call(BaseModel):
    index: int = 0
    id: str | None = None
    function: _Function = _Function()


class _Delta(BaseModel):
    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _Chunk(BaseModel):
    choices: list[_Choice] = []


class ChatEndpoint:
    """A chat over one endpoint, with its connections."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._http = build_client(endpoint, timeout_s)

    choices = ("auto", "required", "function")

    async def answer(
        self,
        messages: Sequence[ChatMessage],
        max_tokens: int | None,
        tools: ChatTools = NO_TOOLS,
        *,
        whole: bool = False,
    ) -> AsyncGenerator[ChatDelta, None]:
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": [_encode_message(one) for one in messages],
            "stream": True,
            **_encode_tools(tools),
        }
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        address = f"{self._endpoint.url}/chat/completions"
        try:
            async with self._http.stream("POST", address, json=body) as response:
                if response.is_error:
                    await response.aread()
                response.raise_for_status()
                async for line in response.aiter_lines():
                    data = line.removeprefix(_DATA).strip()
                    if data == _END:
                        return
                    if line.startswith(_DATA):
                        for delta in _decode_deltas(data):
                            yield delta
        except (httpx.HTTPError, ValidationError) as error:
            raise ChatFailed(f"the chat failed: {explain(error)}") from error

    async def close(self) -> None:
        await self._http.aclose()


def _encode_message(message: ChatMessage) -> dict[str, Any]:
    written: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.call_id is not None:
        written["tool_call_id"] = message.call_id
    if message.calls:
        written["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.calls
        ]
    return written


def _encode_tools(tools: ChatTools) -> dict[str, Any]:
    if not tools.functions:
        return {}
    named = {"type": "function", "function": {"name": tools.named}}
    single: dict[str, Any] = {} if tools.parallel else {"parallel_tool_calls": False}
    return {
        **single,
        "tools": [{"type": "function", "function": one} for one in tools.functions],
        "tool_choice": named if tools.choice is None else tools.choice,
    }


def _decode_deltas(data: str) -> list[ChatDelta]:
    found: list[ChatDelta] = []
    for choice in _Chunk.model_validate_json(data).choices[:1]:
        text, cut = choice.delta.content or "", choice.finish_reason == "length"
        for call in choice.delta.tool_calls or ():
            made = call.function
            piece = ToolCallDelta(call.index, made.name or None, call.id, made.arguments or "")
            found.append(ChatDelta("", call=piece))
        if text or cut:
            found.append(ChatDelta(text, cut))
    return found


class TranscriptionEndpoint:
    """Implements `Transcriber`: sends the whole utterance as a WAV file, once it has ended."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._http = build_client(endpoint, timeout_s)

    async def transcribe(
        self, options: UtteranceOptions, pieces: AsyncIterator[HeardPiece], report: Report
    ) -> Transcript:
        heard = [piece.sound async for piece in pieces]
        sound = np.concatenate(heard) if heard else np.zeros(0, np.int16)
        text = await self._ask(options.request, sound)
        transcript = Transcript(text, seconds=len(sound) / HEARD_RATE)
        report(transcript, True)
        return transcript

    async def close(self) -> None:
        await self._http.aclose()

    async def _ask(self, request: TranscriptionRequest, sound: Heard) -> str:
        file = BytesIO()
        soundfile.write(file, sound, HEARD_RATE, format="WAV")
        fields = {"model": self._endpoint.model, "response_format": "json"}
        if request.language is not None:
            fields["language"] = request.language
        if request.prompt:
            fields["prompt"] = request.prompt
        address = f"{self._endpoint.url}/audio/transcriptions"
        try:
            response = await self._http.post(
                address, data=fields, files={"file": ("speech.wav", file.getvalue(), "audio/wav")}
            )
            response.raise_for_status()
            return str(response.json()["text"]).strip()
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise TranscriptionFailed(f"the transcription failed: {explain(error)}") from error
