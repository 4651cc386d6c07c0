"""What the Gradio app asks of the speech server, over HTTP as any client would."""

from __future__ import annotations

import asyncio
import base64
import json
import mimetypes
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr
import httpx

MAX_S = 600.0
"""A request that takes longer is given up."""

_FIELDS = {
    "input": "text",
    "ref_audio": "recording",
    "ref_text": "transcript",
    "file": "recording",
    "response_format": "form",
}
"""The server's names of fields that have others in this app."""

Report = Callable[[tuple[int, int]], object]
"""Takes the step and the number of steps."""


def authorization(request: gr.Request) -> dict[str, str]:
    """The caller's API key, as it came."""
    key = request.headers.get("authorization")
    return {"authorization": key} if key else {}


@dataclass(frozen=True)
class ServerClient:
    """The speech server, for one app.

    Args:
        open_client: opens a client of it.
        folder: for files that are made.
    """

    open_client: Callable[[], httpx.AsyncClient]
    folder: Path

    async def speak(self, fields: Mapping[str, Any], headers: Mapping[str, str]) -> str:
        """The path of an MP3 file with what was said.

        Args:
            fields: of `POST /v1/audio/speech`.
            headers: of the request.
        """
        body = {**_drop_empty(fields), "response_format": "mp3"}
        async with self._open_answer("v1/audio/speech", headers, json=body) as answer:
            return self._keep(await answer.aread(), ".mp3")

    async def draw(
        self, fields: Mapping[str, Any], headers: Mapping[str, str], report: Report
    ) -> tuple[str, int]:
        """The path of a PNG file, and the seed it was drawn with.

        Args:
            fields: of `POST /v1/images/generations`.
            headers: of the request.
            report: is called at each step.
        """
        body = {**_drop_empty(fields), "stream": True, "stream_progress": True}
        async with self._open_answer("v1/images/generations", headers, json=body) as answer:
            async for event in _read_events(answer):
                if event["type"].endswith(".progress"):
                    report((event["step"], event["steps"]))
                elif event["type"].endswith(".completed"):
                    return self._keep(base64.b64decode(event["b64_json"]), ".png"), event["seed"]
        raise gr.Error("The drawing ended without a picture.", print_exception=False)

    async def answer(
        self, messages: Sequence[Mapping[str, Any]], model: str, headers: Mapping[str, str]
    ) -> AsyncIterator[str]:
        """An answer in words, piece by piece.

        Args:
            messages: of `POST /v1/chat/completions`.
            model: empty means the server's first that answers.
            headers: of the request.
        """
        body = _drop_empty({"messages": list(messages), "model": model, "stream": True})
        async with self._open_answer("v1/chat/completions", headers, json=body) as answer:
            async for event in _read_events(answer):
                for choice in event["choices"]:
                    yield choice["delta"].get("content") or ""

    async def transcribe(
        self, recording: str, fields: Mapping[str, Any], headers: Mapping[str, str]
    ) -> str:
        """What is said in a recording.

        Args:
            recording: path of the file.
            fields: of `POST /v1/audio/transcriptions`.
            headers: of the request.
        """
        path = "v1/audio/transcriptions"
        with await asyncio.to_thread(Path(recording).open, "rb") as file:
            sent = {"files": {"file": file}, "data": _drop_empty(fields)}
            async with self._open_answer(path, headers, **sent) as answer:
                await answer.aread()
                return answer.text.strip()

    @asynccontextmanager
    async def _open_answer(
        self, path: str, headers: Mapping[str, str], **sent: Any
    ) -> AsyncIterator[httpx.Response]:
        """A streamed answer; the server's error becomes a message in the app."""
        try:
            async with (
                asyncio.timeout(MAX_S),
                self.open_client() as client,
                client.stream("POST", path, headers=headers, **sent) as answer,
            ):
                if not answer.is_success:
                    await answer.aread()
                    raise _build_refusal(answer)
                yield answer
        except httpx.TransportError as error:
            raise _build_error("The speech server cannot be reached, or broke off.") from error
        except TimeoutError as error:
            raise _build_error(f"The speech server took longer than {MAX_S:.0f} s.") from error

    def _keep(self, data: bytes, suffix: str) -> str:
        with tempfile.NamedTemporaryFile(
            dir=self.folder, prefix="made-", suffix=suffix, delete=False
        ) as file:
            file.write(data)
        return file.name


def as_data_url(path: str) -> str:
    """A file as a `data:` URL."""
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(Path(path).read_bytes()).decode()}"


async def _read_events(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """Server-sent events, up to `[DONE]`."""
    async for line in answer.aiter_lines():
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data == "[DONE]":
            continue
        event = json.loads(data)
        if event.get("error"):
            raise _build_error(event["error"]["message"])
        yield event


def _build_refusal(answer: httpx.Response) -> gr.Error:
    try:
        message = _rename_field(answer.json()["error"])
    except (ValueError, LookupError, TypeError):
        message = f"The server answered {answer.status_code}."  # a proxy in front of it did
    return _build_error(message, answer.headers.get("retry-after"))


def _build_error(message: str, retry_after: str | None = None) -> gr.Error:
    again = f" Try again in {retry_after} s." if retry_after else ""
    return gr.Error(message + again, print_exception=False)


def _rename_field(error: Mapping[str, Any]) -> str:
    """The server's words about a field, which they begin with, as this app calls it."""
    message, theirs = str(error["message"]), error.get("param")
    if theirs in _FIELDS and message.startswith(theirs):
        return _FIELDS[theirs] + message.removeprefix(theirs)
    return message


def _drop_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Without what was left empty."""
    return {name: value for name, value in fields.items() if value not in ("", None)}
