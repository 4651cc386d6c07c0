"""Answers of a running server, in words and in sound, while they are made."""

from __future__ import annotations

import base64
import json
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np

from cantata.client.speech import Pcm, ServerError, authorization, read_http_error, server_error

ANSWER_RATE = 24_000
"""Hz, of an answer's sound, which is mono."""
_PATH, _EVENT, _DONE = "/v1/chat/completions", "data: ", "[DONE]"
_TIMEOUT = httpx.Timeout(10.0, read=600.0)


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """What arrives in one event."""

    text: str
    """May be empty."""
    pcm: Pcm | None
    """[N, 1] at `ANSWER_RATE`."""


def stream_answer(
    server: str, body: Mapping[str, Any], api_key: str | None
) -> Generator[AnswerPiece, None, None]:
    """Ask for an answer. Closing the generator ends it on the server, too.

    Args:
        body: fields of `POST /v1/chat/completions`.

    Yields:
        Its pieces as they arrive.

    Raises:
        ServerError: the server rejected the request, failed on the way, or cannot be reached.
    """
    try:
        with (
            httpx.Client(base_url=server, timeout=_TIMEOUT) as http,
            http.stream(
                "POST", _PATH, json={**body, "stream": True}, headers=authorization(api_key)
            ) as response,
        ):
            if response.is_error:
                response.read()
                raise read_http_error(response)
            for line in response.iter_lines():
                event = line.removeprefix(_EVENT)
                if event != line and event != _DONE:
                    yield from _read(json.loads(event))
    except (httpx.TransportError, httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise ServerError(f"{server}: {error}") from error


def _read(event: dict[str, Any]) -> Iterator[AnswerPiece]:
    if "error" in event:
        raise server_error(event)
    for choice in event.get("choices") or ():
        delta = choice.get("delta") or {}
        audio = delta.get("audio") or {}
        data = audio.get("data")
        pcm = None if data is None else np.frombuffer(base64.b64decode(data), "<i2")[:, None]
        text = (delta.get("content") or "") + (audio.get("transcript") or "")
        if text or pcm is not None:
            yield AnswerPiece(text, pcm)
