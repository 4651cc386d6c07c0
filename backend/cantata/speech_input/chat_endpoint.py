"""Answers from any server with OpenAI's `POST /chat/completions`, streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import httpx
from pydantic import BaseModel, ValidationError

from cantata.speech_input.chat import (
    NO_TOOLS,
    ChatDelta,
    ChatFailed,
    ChatMessage,
    ChatTools,
    ToolCallDelta,
)
from cantata.speech_input.endpoint import build_client, explain
from cantata.speech_input.settings import Endpoint

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
    ) -> AsyncGenerator[ChatDelta, None]:
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": [_message(one) for one in messages],
            "stream": True,
            **_tools(tools),
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
                        for delta in _deltas(data):
                            yield delta
        except (httpx.HTTPError, ValidationError) as error:
            raise ChatFailed(f"the chat failed: {explain(error)}") from error

    async def close(self) -> None:
        await self._http.aclose()


def _message(message: ChatMessage) -> dict[str, Any]:
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


def _tools(tools: ChatTools) -> dict[str, Any]:
    if not tools.functions:
        return {}
    named = {"type": "function", "function": {"name": tools.named}}
    return {
        "tools": [{"type": "function", "function": one} for one in tools.functions],
        "tool_choice": named if tools.choice is None else tools.choice,
    }


def _deltas(data: str) -> list[ChatDelta]:
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
