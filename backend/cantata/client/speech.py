"""Speech from a running server, over its WebSocket or HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
import websockets.asyncio.client as sockets
from numpy.typing import NDArray

from cantata.contract.data.errors import CantataError
from cantata.contract.service import SpokenWord

Pcm = NDArray[np.int16]
"""[N, C]."""

KEY_VARIABLE = "CANTATA_API_KEY"
"""Where the command reads the key for a server that requires one."""
_STREAM_PATH = "/v1/audio/speech/stream"
_SPEECH_PATH = "/v1/audio/speech"
_SYNCHRONIZE = "client-synchronise"


class ServerError(CantataError):
    """An error that the server answered instead of sound."""

    def __init__(self, message: str, error_code: str | None = None, param: str | None = None):
        super().__init__(message, error_code, param)
        self.error_code = error_code
        self.param = param

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class UtteranceReport:
    """The server's figures of one utterance."""

    utterance_id: str
    samples: int
    """Sent, per channel."""
    duration_s: float
    ttfp_s: float | None
    rtf: float | None
    cancelled: bool


class Session:
    """One configured WebSocket, for one `speak` at a time."""

    def __init__(self, socket: sockets.ClientConnection) -> None:
        self._socket = socket
        self._options: dict[str, Any] = {}
        self.model = ""
        self.voice = ""
        self.sample_rate = 0
        """Hz."""
        self.channels = 0
        self.last: UtteranceReport | None = None
        self.words: list[SpokenWord] = []
        """The words of the latest `speak` so far, if the session is configured with
        `timestamps`: offsets into its text, seconds from its first sample."""
        self._received_samples = 0
        self._utterance_start_s = 0.0

    async def configure(self, **options: Any) -> None:
        """Send `session.config` with these fields and wait for its answer."""
        await self.send("session.config", **options)
        self._options = options
        configured = await self._read_event()
        self.model, self.voice = configured["model"], configured["voice"]
        self.sample_rate, self.channels = configured["sample_rate"], configured["channels"]

    async def speak(self, text: str, **options: Any) -> AsyncGenerator[Pcm, None]:
        """The samples of one text; `options` configure the session first.

        Leaving the iteration early (close it with `aclosing`) cancels the utterance.

        Raises:
            ServerError: the server rejected the text or could not finish it.
        """
        if options:
            await self.configure(**options)
        self.words, self._received_samples = [], 0
        await self.send("input.text", text=text)
        await self.send("input.done")
        try:
            async with aclosing(self.receive()) as pcm:
                async for samples in pcm:
                    yield samples
        except ServerError:
            # A rejected text is followed by a rejected `input.done`; the next text is not to blame.
            await self._synchronize()
            raise
        except (GeneratorExit, asyncio.CancelledError):
            await self.cancel()
            raise

    async def receive(self) -> AsyncGenerator[Pcm, None]:
        """Samples of the requested text, up to `input.spoken` or a cancelled end."""
        failure: ServerError | None = None
        while True:
            message = await self._socket.recv()
            if isinstance(message, bytes):
                samples = self._decode(message)
                self._received_samples += len(samples)
                yield samples
                continue
            event = json.loads(message)
            match event["type"]:
                case "audio.start":
                    self._utterance_start_s = self._received_samples / event["sample_rate"]
                case "audio.timestamps":
                    self.words.extend(_read_words(event, self._utterance_start_s))
                case "audio.done":
                    self._take_report(event)
                    if event["cancelled"]:
                        return
                case "error":
                    failure = server_error(event)
                    if event["utterance_id"] is None:
                        raise failure
                case "input.spoken":
                    if failure is not None:
                        raise failure
                    return

    async def cancel(self) -> None:
        """Stop speaking; returns when the server has stopped."""
        await self.send("input.cancel")
        await self._read_until(lambda event: event.get("type") == "input.cancelled")

    async def send(self, kind: str, **fields: Any) -> None:
        await self._socket.send(json.dumps({"type": kind, **fields}))

    async def _synchronize(self) -> None:
        """Read up to here: a repeated configuration is answered after everything before it."""
        await self.send("session.config", **self._options, context_id=_SYNCHRONIZE)
        await self._read_until(lambda event: event.get("context_id") == _SYNCHRONIZE)

    async def _read_until(self, is_last: Callable[[dict[str, Any]], bool]) -> None:
        while True:
            message = await self._socket.recv()
            event = {} if isinstance(message, bytes) else json.loads(message)
            if event.get("type") == "audio.done":
                self._take_report(event)
            if is_last(event):
                return

    def _decode(self, data: bytes) -> Pcm:
        return np.frombuffer(data, dtype="<i2").reshape(-1, self.channels)

    def _take_report(self, event: dict[str, Any]) -> None:
        fields = UtteranceReport.__dataclass_fields__
        self.last = UtteranceReport(**{name: event[name] for name in fields})

    async def _read_event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(await self._socket.recv())
        if event["type"] == "error":
            raise server_error(event)
        return event


@asynccontextmanager
async def connect(url: str, api_key: str | None = None, **options: Any) -> AsyncIterator[Session]:
    """A session with the server at this HTTP URL, configured with `options`."""
    address = "ws" + url.removeprefix("http").rstrip("/") + _STREAM_PATH
    headers = authorization(api_key)
    async with sockets.connect(address, compression=None, additional_headers=headers) as socket:
        session = Session(socket)
        await session.configure(**options)
        yield session


@dataclass(frozen=True, slots=True)
class SpeechStream:
    sample_rate: int
    channels: int
    request_id: str
    pcm: AsyncIterator[Pcm]
    words: list[SpokenWord] = field(default_factory=list)
    """Grows while `pcm` is read, if `timestamps` were requested."""
    ignored: tuple[str, ...] = ()
    """Fields of the request that the model does not support."""


@asynccontextmanager
async def stream_speech(
    url: str, text: str, api_key: str | None = None, **options: Any
) -> AsyncIterator[SpeechStream]:
    """POST /v1/audio/speech; entering returns when the first samples have arrived.

    Args:
        url: server, such as `http://127.0.0.1:8000`.
        options: other fields of the request; with `timestamps=True` the answer has `words`.

    Raises:
        ServerError: the server rejected the request.
        httpx.TransportError: it cannot be reached, or broke off.
    """
    body = {"input": text, "response_format": "pcm", **options}
    if options.get("timestamps"):
        body["stream_format"] = "sse"
    async with (
        httpx.AsyncClient(base_url=url, timeout=httpx.Timeout(10, read=60)) as http,
        http.stream("POST", _SPEECH_PATH, json=body, headers=authorization(api_key)) as response,
    ):
        if response.is_error:
            await response.aread()
            raise read_http_error(response)
        channels = int(response.headers["x-channels"])
        words: list[SpokenWord] = []
        events = options.get("timestamps")
        pieces = _read_audio_events(response, words) if events else response.aiter_raw()
        yield SpeechStream(
            sample_rate=int(response.headers["x-sample-rate"]),
            channels=channels,
            request_id=response.headers["x-request-id"],
            pcm=_join_samples(pieces, channels),
            words=words,
            ignored=tuple(filter(None, response.headers.get("x-ignored", "").split(", "))),
        )


async def _read_audio_events(
    response: httpx.Response, words: list[SpokenWord]
) -> AsyncIterator[bytes]:
    """The audio of server-sent events; the words on the way go into `words`. Raises ServerError:
    the speech broke off."""
    async for line in response.aiter_lines():
        if not line.startswith("data:"):
            continue
        event = json.loads(line.removeprefix("data:"))
        match event["type"]:
            case "speech.audio.delta":
                yield base64.b64decode(event["audio"])
            case "speech.audio.timestamps":
                words.extend(_read_words(event))
            case "speech.audio.error":
                raise server_error(event)


def _read_words(event: dict[str, Any], start_s: float = 0.0) -> list[SpokenWord]:
    return [
        SpokenWord(w["text_start"], w["text_end"], start_s + w["start"], start_s + w["end"])
        for w in event["words"]
    ]


async def _join_samples(pieces: AsyncIterator[bytes], channels: int) -> AsyncIterator[Pcm]:
    """HTTP may cut its pieces anywhere, even within a sample."""
    block, rest = 2 * channels, b""
    async for piece in pieces:
        data = rest + piece
        whole = len(data) - len(data) % block
        rest = data[whole:]
        if whole:
            yield np.frombuffer(data[:whole], dtype="<i2").reshape(-1, channels)


def authorization(api_key: str | None) -> dict[str, str]:
    """The header that a key is sent in; None: none."""
    return {} if api_key is None else {"authorization": f"Bearer {api_key}"}


def read_http_error(response: httpx.Response) -> ServerError:
    """The error in a response whose body has been read."""
    try:
        return server_error(response.json())
    except (ValueError, KeyError, TypeError):
        return ServerError(f"the server answered {response.status_code}")


def server_error(body: dict[str, Any]) -> ServerError:
    error = body["error"]
    return ServerError(error["message"], error["code"], error["param"])
