"""Transcribes with any server that has OpenAI's `POST /audio/transcriptions`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from io import BytesIO

import httpx
import numpy as np
import soundfile

from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.speech_input.endpoint import build_client, explain
from cantata.speech_input.settings import Endpoint
from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.transcription import (
    HeardPiece,
    Report,
    TranscriptionFailed,
    UtteranceOptions,
)


class TranscriptionEndpoint:
    """Implements `Transcriber`: sends the whole utterance as a WAV file, once it has ended."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._http = build_client(endpoint, timeout_s)

    async def transcribe(
        self, options: UtteranceOptions, pieces: AsyncIterator[HeardPiece], report: Report
    ) -> Transcript:
        """The words, by the endpoint."""
        heard = [piece.sound async for piece in pieces]
        sound = np.concatenate(heard) if heard else np.zeros(0, np.int16)
        text = await self._ask(options.request, sound)
        transcript = Transcript(text, seconds=len(sound) / HEARD_RATE)
        report(transcript, True)
        return transcript

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def _ask(self, request: TranscriptionRequest, sound: Heard) -> str:
        file = BytesIO()
        soundfile.write(file, sound, HEARD_RATE, format="WAV")
        fields = {"model": self._endpoint.model, "response_format": "json"}
        if request.language is not None:
            fields["language"] = request.language
        if request.prompt:
            fields["prompt"] = request.prompt
        address = f"{self._endpoint.url}/audio/transcriptions"
        try:
            response = await self._http.post(
                address, data=fields, files={"file": ("speech.wav", file.getvalue(), "audio/wav")}
            )
            response.raise_for_status()
            return str(response.json()["text"]).strip()
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise TranscriptionFailed(f"the transcription failed: {explain(error)}") from error
