"""What a line of a batch was answered, as JSON, and what it took."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx

from cantata.api import errors
from cantata.api.speech.framing import build_usage
from cantata.jobs.batch import LineAnswer, TokenUsage

RECORDED_AS = "BATCH"
"""In place of a request's method, where requests are logged."""
_JSON = "application/json"
_FINAL_CODES = ("internal_error", "start_failed", "not_installed")
"""Of server errors that no later attempt changes."""


def refuse(error: Exception) -> httpx.Response:
    """An error as the routes answer it."""
    described = errors.describe(error)
    return httpx.Response(
        described.status, json={"error": described.detail.model_dump(mode="json")}
    )


def make_answer(
    answered: httpx.Response, request_id: str, request: dict[str, Any], sound_s: float
) -> LineAnswer:
    """An answer as JSON: sound in base64, other text as a string. `sound_s`: seconds of sound that
    were made for it."""
    kind = answered.headers.get("content-type", "")
    passes = False
    if answered.status_code >= 400:
        passes = answered.status_code == 429 or (
            answered.status_code >= 500 and _find_code(answered.content) not in _FINAL_CODES
        )
    body, used = answered.content, TokenUsage()
    if kind.startswith("audio/"):
        sound = _write_sound(answered, request, sound_s)
        body, used = json.dumps(sound).encode(), _read_usage(sound)
    elif kind.startswith(_JSON):
        used = _read_usage(_read_json(body))
    else:
        body = json.dumps(answered.content.decode()).encode()
    return LineAnswer(answered.status_code, request_id, body or b"null", passes, used)


def _find_code(body: bytes) -> str | None:
    error = _read_json(body).get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else None


def _read_json(body: bytes) -> dict[str, Any]:
    """An object; empty: it is none."""
    try:
        read = json.loads(body)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _read_usage(answer: dict[str, Any]) -> TokenUsage:
    """Of an answer of any route; recordings are counted in seconds, not in tokens."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return TokenUsage()

    def read(*names: str, of: dict[str, Any] = usage) -> int:
        return next((one for name in names if isinstance(one := of.get(name), int)), 0)

    taken = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    made = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    return TokenUsage(
        read("prompt_tokens", "input_tokens"),
        read("cached_tokens", of=taken),
        read("completion_tokens", "output_tokens"),
        read("reasoning_tokens", of=made),
    )


def _write_sound(
    answered: httpx.Response, request: dict[str, Any], sound_s: float
) -> dict[str, Any]:
    headers = answered.headers
    ignored = headers.get("x-ignored")
    return {
        "audio": base64.b64encode(answered.content).decode("ascii"),
        "format": request.get("response_format") or "mp3",
        "content_type": headers["content-type"],
        "sample_rate": int(headers["x-sample-rate"]),
        "channels": int(headers["x-channels"]),
        "ignored": ignored.split(", ") if ignored else [],
        "usage": build_usage(str(request.get("input")), sound_s).model_dump(),
    }
