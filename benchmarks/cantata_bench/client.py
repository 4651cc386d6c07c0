"""The server under test and its two transports; 429 becomes `NoRoom`."""

from __future__ import annotations

import json
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from cantata_bench.listener import Listener

DEFAULT_RETRY_S = 1.0
"""If a 429 has no `retry-after`."""
_OPENAI_PCM_RATE = 24_000
_READ_TIMEOUT_S = 120.0
_STEP = re.compile(r"([\w-]+)(?:\s*;\s*desc=[^;,]*)?\s*;\s*dur=([\d.]+)")

Arrived = Callable[[float], None]
"""Called with the seconds of sound in each packet."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server that speaks OpenAI's speech API, and this project's WebSocket where asked to."""

    url: str
    """Such as `http://127.0.0.1:8000`."""
    api_key: str | None = None
    model: str | None = None
    voices: tuple[str, ...] = ()
    """Dealt out to the streams; empty: the server's default."""

    def options(self, stream: int) -> dict[str, Any]:
        """Fields of stream number `stream`'s requests."""
        named = {"model": self.model}
        if self.voices:
            named["voice"] = self.voices[stream % len(self.voices)]
        return {key: value for key, value in named.items() if value is not None}

    @property
    def headers(self) -> dict[str, str]:
        """Sent with every request."""
        return {} if self.api_key is None else {"authorization": f"Bearer {self.api_key}"}


class NoRoom(Exception):
    """The server has no room now."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s


class RequestFault(Exception):
    """The server could not do it."""


class ConnectionLost(RequestFault):
    """Nor will it do anything else on this connection."""


class Speaker(Protocol):
    """The connection of one stream, for one text at a time."""

    async def speak(self, text: str, listener: Listener, arrived: Arrived) -> None:
        """Request a text and receive it to its end; the listener's times count from here.

        Raises:
            NoRoom: at capacity.
            RequestFault: the answer was an error, or broke off (`ConnectionLost`).
        """
        ...


class Connections:
    """The connections of one stream, one at a time: opened on use, and again after a loss.

    Args:
        connect: opens one.
        one_request_each: closed after each request.
    """

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[Speaker]],
        *,
        one_request_each: bool = False,
    ) -> None:
        self._connect = connect
        self._one_request_each = one_request_each
        self._open = AsyncExitStack()
        self._speaker: Speaker | None = None

    async def __aenter__(self) -> Connections:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def speak(self, text: str, listener: Listener, arrived: Arrived) -> None:
        """As in `Speaker`. A connection that is rejected with 429 is a rejected request.

        Raises:
            OSError: no server answers.
        """
        keep = False
        try:
            if self._speaker is None:
                self._speaker = await self._open.enter_async_context(self._connect())
            await self._speaker.speak(text, listener, arrived)
            keep = not self._one_request_each
        except ConnectionLost:
            raise
        except (NoRoom, RequestFault):
            keep = self._speaker is not None and not self._one_request_each
            raise
        finally:
            if not keep:
                await self._close()

    async def _close(self) -> None:
        self._speaker = None
        await self._open.aclose()


def open_speaker(
    target: Target, transport: str, stream: int
) -> AbstractAsyncContextManager[Speaker]:
    """Connect stream number `stream`.

    Raises:
        NoRoom: the connection itself was answered with 429.
        ConnectionLost: it could not be made.
        OSError: no server answers.
    """
    return (
        _connect_http(target, stream) if transport == "http" else _connect_websocket(target, stream)
    )


@asynccontextmanager
async def _connect_http(target: Target, stream: int) -> AsyncIterator[Speaker]:
    timeout = httpx.Timeout(10.0, read=_READ_TIMEOUT_S, pool=None)
    async with httpx.AsyncClient(
        base_url=target.url, headers=target.headers, timeout=timeout, verify=_make_tls()
    ) as client:
        yield _HttpSpeaker(client, target.options(stream))


@cache
def _make_tls() -> ssl.SSLContext:
    """Made once: it takes longer than many a first packet."""
    return httpx.create_ssl_context()


class _HttpSpeaker:
    def __init__(self, client: httpx.AsyncClient, options: dict[str, Any]) -> None:
        self._client = client
        self._options = {"model": "tts-1", "voice": "alloy", **options}

    async def speak(self, text: str, listener: Listener, arrived: Arrived) -> None:
        body = {"input": text, "response_format": "pcm", **self._options}
        began = time.perf_counter()
        try:
            async with self._client.stream("POST", "/v1/audio/speech", json=body) as answer:
                if answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
                    raise NoRoom(_retry_after_s(answer.headers.get("retry-after")))
                if answer.is_error:
                    await answer.aread()
                    raise RequestFault(f"{answer.status_code}: {answer.text[:200]}")
                rate = int(answer.headers.get("x-sample-rate", _OPENAI_PCM_RATE))
                channels = int(answer.headers.get("x-channels", 1))
                listener.head(time.perf_counter() - began, rate, channels)
                listener.timeline = build_timeline(answer.headers.get("server-timing", ""))
                async for data in answer.aiter_raw():
                    arrived(listener.packet(time.perf_counter() - began, data))
        except httpx.HTTPError as error:
            raise RequestFault(f"{type(error).__name__}: {error}") from error


def build_timeline(server_timing: str) -> dict[str, float]:
    """The steps of a W3C Server-Timing header, in seconds; those without a duration left out."""
    return {name: float(duration_ms) / 1000 for name, duration_ms in _STEP.findall(server_timing)}


def _retry_after_s(value: str | None) -> float:
    try:
        return float(value or DEFAULT_RETRY_S)
    except ValueError:  # a date
        return DEFAULT_RETRY_S


@asynccontextmanager
async def _connect_websocket(target: Target, stream: int) -> AsyncIterator[Speaker]:
    address = target.url.replace("http", "ws", 1) + "/v1/audio/speech/stream"
    try:
        async with connect(
            address, max_size=None, compression=None, additional_headers=target.headers
        ) as socket:
            config = {"type": "session.config", "seed": stream, **target.options(stream)}
            await socket.send(json.dumps(config))
            answer = json.loads(await socket.recv())
            if answer["type"] != "session.configured":
                raise ConnectionLost(f"the server answered {answer}")
            yield _SocketSpeaker(socket)
    except InvalidStatus as error:
        if error.response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            raise NoRoom(_retry_after_s(error.response.headers.get("retry-after"))) from error
        raise ConnectionLost(f"the server answered {error.response.status_code}") from error
    except WebSocketException as error:
        raise ConnectionLost(f"{type(error).__name__}: {error}") from error


class _SocketSpeaker:
    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def speak(self, text: str, listener: Listener, arrived: Arrived) -> None:
        await self._socket.send(json.dumps({"type": "input.text", "text": text}))
        began = time.perf_counter()
        await self._socket.send(json.dumps({"type": "input.done"}))
        fault: Exception | None = None
        while True:
            message = await self._socket.recv()
            now_s = time.perf_counter() - began
            if isinstance(message, bytes):
                arrived(listener.packet(now_s, message))
                continue
            event = json.loads(message)
            match event["type"]:
                case "audio.start":
                    listener.head(now_s, event["sample_rate"], event["channels"])
                case "audio.done":
                    # The first packet is the first sentence's.
                    listener.timeline = listener.timeline or event.get("timeline", {})
                case "error":
                    fault = _to_error(event)
                    if event["utterance_id"] is None:
                        raise fault
                case "input.spoken":
                    if fault is not None:
                        raise fault
                    return


def _to_error(event: dict[str, Any]) -> Exception:
    error = event["error"]
    if error["code"] == "rate_limit_exceeded":
        return NoRoom(float(event.get("retry_after_s") or DEFAULT_RETRY_S))
    return RequestFault(f"{error['code']}: {error['message']}")
