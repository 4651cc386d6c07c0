"""The interface of a recogniser: sound in, words out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from cantata.contract.data.errors import CantataError


class TranscriptionFailed(CantataError):
    """An input could not be transcribed."""

    code = "transcription_failed"


class Transcriber(Protocol):
    """A recogniser that serves all sessions."""

    async def transcribe(self, sound: AsyncIterator[bytes]) -> str:
        """The words of one utterance; empty if there are none. Cancelling ends the work.

        Args:
            sound: s16le at `HEARD_RATE`, mono, while it is spoken.

        Raises:
            TranscriptionFailed: says why.
        """
        ...

    async def close(self) -> None:
        """Free its resources."""
        ...
