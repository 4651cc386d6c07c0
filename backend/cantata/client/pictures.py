"""A small client for a running server that draws: a prompt in, its progress and the picture out.

It uses the protocol as any outside client would.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from cantata.client.speech import ServerError, authorization, read_http_error, server_error

_GENERATIONS, _EDITS = "/v1/images/generations", "/v1/images/edits"
_CONNECT_S = 10.0


@dataclass(frozen=True, slots=True)
class Step:
    step: int
    """Steps done, 0 to `steps`."""
    steps: int


@dataclass(frozen=True, slots=True)
class PictureFile:
    data: bytes
    size: str
    """`WIDTHxHEIGHT` in pixels."""
    seed: int
    """It was drawn with."""


async def draw_picture(
    url: str,
    options: Mapping[str, Any],
    pictures: Sequence[bytes] = (),
    api_key: str | None = None,
) -> AsyncGenerator[Step | PictureFile, None]:
    """The progress of one picture, and last the picture. Leaving early (close it with `aclosing`)
    ends the drawing.

    Args:
        url: server, such as `http://127.0.0.1:8000`.
        options: fields of the request, `prompt` among them; none that is None.
        pictures: files to edit; none: the picture is made from words alone.

    Raises:
        ServerError: the server rejected the request, or could not finish it.
        httpx.TransportError: it cannot be reached, or broke off.
    """
    body = {**options, "stream": True, "stream_progress": True}
    sent: dict[str, Any] = {"json": body}
    if pictures:
        files = [("image[]", (str(number), data)) for number, data in enumerate(pictures)]
        sent = {"data": {name: _as_text(value) for name, value in body.items()}, "files": files}
    # A picture may take its time, and nothing comes before its first step.
    timeout = httpx.Timeout(_CONNECT_S, read=None)
    async with (
        httpx.AsyncClient(base_url=url, timeout=timeout) as http,
        http.stream(
            "POST", _EDITS if pictures else _GENERATIONS, headers=authorization(api_key), **sent
        ) as response,
    ):
        if response.is_error:
            await response.aread()
            raise read_http_error(response)
        async for line in response.aiter_lines():
            if line.startswith("data:"):
                yield _read(json.loads(line.removeprefix("data:")))


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(event: dict[str, Any]) -> Step | PictureFile:
    if "error" in event:
        raise server_error(event)
    match event["type"].rpartition(".")[2]:
        case "progress":
            return Step(event["step"], event["steps"])
        case "completed":
            return PictureFile(base64.b64decode(event["b64_json"]), event["size"], event["seed"])
    raise ServerError(f"the server sent the event {event['type']!r}, which is not known")
