"""Asks a served model to speak, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx


@dataclass(frozen=True, slots=True, eq=False)
class SpeechClient:
    """A client of one server, which asks for bare samples."""

    url: str
    usual: Mapping[str, Any] = field(default_factory=dict)
    """Fields of every request."""

    def post(self, **fields: Any) -> httpx.Response:
        """Ask for speech."""
        body = {"response_format": "pcm", **self.usual, **fields}
        return httpx.post(f"{self.url}/v1/audio/speech", json=body, timeout=120)

    def hear(self, **fields: Any) -> bytes:
        """Return the sound of a request that succeeds."""
        response = self.post(**fields)
        assert response.status_code == 200, response.text
        return response.content

    def refuse(self, **fields: Any) -> dict[str, Any]:
        """Return the error of a request that is not valid."""
        response = self.post(**fields)
        assert response.status_code == 400, (response.headers, response.text[:300])
        error: dict[str, Any] = response.json()["error"]
        return error

    def assert_refused(self, param: str | None, message: str, **fields: Any) -> None:
        """Check that a request is refused, for which parameter, and what the message says."""
        error = self.refuse(**fields)
        assert error["param"] == param
        assert message in error["message"]

    def describe(self) -> dict[str, Any]:
        """Return what is listed of the only model."""
        (model,) = httpx.get(f"{self.url}/v1/audio/models", timeout=60).json()["models"]
        assert isinstance(model, dict)
        return model

    def upload(self, file: bytes, **fields: str) -> str:
        """Keep a recording as a voice; return the voice's id."""
        upload = httpx.post(
            f"{self.url}/v1/audio/voices",
            data={"name": "Ada", "consent": "true", **fields},
            files={"audio_sample": ("ada.wav", file, "audio/wav")},
            timeout=60,
        )
        assert upload.status_code in (200, 201), upload.text
        return str(upload.json()["id"])

    def delete(self, voice: str) -> None:
        """Delete a kept voice."""
        deleted = httpx.delete(f"{self.url}/v1/audio/voices/{voice}", timeout=60)
        assert deleted.status_code == 200, deleted.text
