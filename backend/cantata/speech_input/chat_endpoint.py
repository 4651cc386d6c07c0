"""Answers from any server with OpenAI's `POST /chat/completions`, streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import httpx
from pydantic import BaseModel, ValidationError

from cantata.speech_input.chat import ChatDelta, ChatFailed, ChatMessage
from cantata.speech_input.endpoint import build_client, explain
from cantata.speech_input.settings import Endpoint

_DATA = "data:"
_END = "[DONE]"


class _Delta(BaseModel):
    content: str | None = None


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

    async def answer(
        self, messages: Sequence[ChatMessage], max_tokens: int | None
    ) -> AsyncGenerator[ChatDelta, None]:
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": [{"role": one.role, "content": one.text} for one in messages],
            "stream": True,
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


def _deltas(data: str) -> list[ChatDelta]:
    choices = _Chunk.model_validate_json(data).choices[:1]
    found = [ChatDelta(one.delta.content or "", one.finish_reason == "length") for one in choices]
    return [delta for delta in found if delta.text or delta.cut]
