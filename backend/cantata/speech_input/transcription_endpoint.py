"""Transcribes with any server that has OpenAI's `POST /audio/transcriptions`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from io import BytesIO

import httpx
import numpy as np
import soundfile

from cantata.speech_input.endpoint import build_client, explain
from cantata.speech_input.settings import Endpoint
from cantata.speech_input.sound import HEARD_RATE
from cantata.speech_input.transcription import TranscriptionFailed


class TranscriptionEndpoint:
    """Sends the whole utterance as a WAV file, once it has ended."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._http = build_client(endpoint, timeout_s)

    async def transcribe(self, sound: AsyncIterator[bytes]) -> str:
        data = b"".join([piece async for piece in sound])
        file = BytesIO()
        soundfile.write(file, np.frombuffer(data, "<i2"), HEARD_RATE, format="WAV")
        address = f"{self._endpoint.url}/audio/transcriptions"
        try:
            response = await self._http.post(
                address,
                data={"model": self._endpoint.model, "response_format": "json"},
                files={"file": ("speech.wav", file.getvalue(), "audio/wav")},
            )
            response.raise_for_status()
            text = response.json()["text"]
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise TranscriptionFailed(f"the transcription failed: {explain(error)}") from error
        return str(text).strip()

    async def close(self) -> None:
        await self._http.aclose()
