"""What was said: sound in, words out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from cantata.contract.data.errors import CantataError


class TranscriptionFailed(CantataError):
    """The words of an input could not be found out."""

    code = "transcription_failed"


class Transcriber(Protocol):
    """Serves all sessions."""

    async def transcribe(self, sound: AsyncIterator[bytes]) -> str:
        """The words of one utterance; empty if there are none. A cancellation ends the work.

        Args:
            sound: s16le at `HEARD_RATE`, mono, while it is spoken.

        Raises:
            TranscriptionFailed: says why.
        """
        ...

    async def close(self) -> None:
        """Free what is held."""
        ...
