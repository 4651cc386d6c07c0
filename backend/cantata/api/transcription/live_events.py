"""What is asked of a stream that is written down while it arrives, and what is reported of it."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data.errors import CantataError
from cantata.contract.data.transcripts import Transcript, TranscriptionRequest


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """How one stream is written down."""

    request: TranscriptionRequest
    endpointing_s: float | None = None
    """Silence that ends an utterance. None: nothing but the stream's end does."""
    utterance_end_s: float | None = None
    """Silence after which `WordsEnded` is reported."""
    partials: bool = False
    """What has been said so far is reported, too."""
    threshold: float = 0.5
    """Probability from which on sound is speech."""


@dataclass(frozen=True, slots=True)
class SpeechHeard:
    """Somebody has begun to speak."""

    at_s: float
    """Seconds of the stream before."""


@dataclass(frozen=True, slots=True)
class LiveTranscript:
    """What was said in a part of the stream."""

    transcript: Transcript
    start_s: float
    """Seconds of the stream before the part; times of words count from there."""
    is_final: bool
    """The next transcript is of what follows."""
    ends_utterance: bool = False
    """The speaker has been silent for long enough."""
    answers_flush: bool = False
    """The last that `LiveTranscription.flush` has caused."""


@dataclass(frozen=True, slots=True)
class WordsEnded:
    """No word has followed for `utterance_end_s`."""

    last_word_end_s: float
    """Seconds of the stream before the last word's end."""


@dataclass(frozen=True, slots=True)
class LiveFailure:
    """A part of the stream could not be recognized; what follows will be tried."""

    error: CantataError


LiveEvent = SpeechHeard | LiveTranscript | WordsEnded | LiveFailure
