"""The interface of a recognizer: an utterance in, its words out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from cantata.contract.data.errors import CantataError
from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.speech_input.sound import Heard


class TranscriptionFailed(CantataError):
    """An input could not be transcribed."""

    code = "transcription_failed"


@dataclass(frozen=True, slots=True)
class HeardPiece:
    sound: Heard
    probability: float | None = None
    """Of speech in it, 0 to 1, by whoever detects turns. None: nobody judged it."""


@dataclass(frozen=True, slots=True)
class UtteranceOptions:
    request: TranscriptionRequest
    threshold: float = 0.5
    """Probability from which on sound is speech."""
    partials: bool = False
    """What has been said so far is reported while the speaker goes on."""
    partial_s: float = 1.0
    """Seconds of sound from one such report to the next, on a server with time to spare."""


Report = Callable[[Transcript, bool], None]
"""Takes what is known of an utterance's present window, and whether that is all of the window: the
next transcript is then of the next window."""


class Transcriber(Protocol):
    async def transcribe(
        self, options: UtteranceOptions, pieces: AsyncIterator[HeardPiece], report: Report
    ) -> Transcript:
        """The words of one utterance; empty if there are none. Cancelling ends the work.

        Args:
            pieces: its sound, while it is spoken.
            report: is called with transcripts of its windows, whose texts make up the result.

        Raises:
            CantataError: says why there are none.
        """
        ...
