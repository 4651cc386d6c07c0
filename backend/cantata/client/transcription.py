"""A small client for a running server that transcribes: a file in, its words out.

It uses the protocol as any outside client would.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import httpx

from cantata.client.speech import authorization, read_http_error, server_error

_TRANSCRIBE, _TRANSLATE = "/v1/audio/transcriptions", "/v1/audio/translations"
_CONNECT_S = 10.0


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str
    end_s: float
    """Seconds of the recording that have been transcribed."""


@dataclass(frozen=True, slots=True)
class FinalTranscript:
    """The whole transcript, as the server sent it."""

    fields: Mapping[str, Any]
    """`text`, `language`, `words`, `segments`, `usage`."""


async def transcribe_file(
    url: str,
    file: BinaryIO,
    name: str,
    fields: Mapping[str, str],
    *,
    translate: bool = False,
    api_key: str | None = None,
) -> AsyncGenerator[TextDelta | FinalTranscript, None]:
    """The text of one file as it is heard, and last all of it. Leaving early (close it with
    `aclosing`) ends the work.

    Args:
        url: server, such as `http://127.0.0.1:8000`.
        file: open for reading.
        fields: of the form, such as `model` and `language`.

    Raises:
        ServerError: the server rejected the request, or could not finish it.
        httpx.TransportError: it cannot be reached, or broke off.
    """
    form: dict[str, Any] = {
        **fields,
        "stream": "true",
        "response_format": "verbose_json",
        "timestamp_granularities[]": ["word", "segment"],
    }
    async with (
        httpx.AsyncClient(base_url=url, timeout=httpx.Timeout(_CONNECT_S, read=None)) as http,
        http.stream(
            "POST",
            _TRANSLATE if translate else _TRANSCRIBE,
            headers=authorization(api_key),
            data=form,
            files={"file": (name, file)},
        ) as response,
    ):
        if response.is_error:
            await response.aread()
            raise read_http_error(response)
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                yield _read(json.loads(line.removeprefix("data:")))


def _read(event: dict[str, Any]) -> TextDelta | FinalTranscript:
    if "error" in event:
        raise server_error(event)
    if event["type"] == "transcript.text.delta":
        return TextDelta(event["delta"], event.get("end", 0.0))
    return FinalTranscript(event)
