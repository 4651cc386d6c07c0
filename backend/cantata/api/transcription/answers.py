"""What transcriptions answer: OpenAI's objects and events."""

from __future__ import annotations

from typing import Literal

from cantata.api.schemas import WireModel
from cantata.contract.data.transcripts import TokenLogprob


class DurationUsage(WireModel):
    """What a recording is counted by."""

    type: Literal["duration"] = "duration"
    seconds: float


class LogprobObject(WireModel):
    """One token."""

    token: str
    bytes: list[int]
    logprob: float

    @classmethod
    def of(cls, token: TokenLogprob) -> LogprobObject:
        return cls(token=token.text, bytes=list(token.data), logprob=round(token.logprob, 5))


class WordObject(WireModel):
    """One word, in seconds from the beginning of the recording."""

    word: str
    start: float
    end: float
    probability: float


class SegmentObject(WireModel):
    """A sentence, or a part of a long one."""

    id: int
    seek: int
    """Hundredths of a second before the window that it was heard in."""
    start: float
    end: float
    text: str
    tokens: list[int]
    temperature: float
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float


class TranscriptionAnswer(WireModel):
    """`response_format` json."""

    text: str
    logprobs: list[LogprobObject] | None = None
    usage: DurationUsage


class VerboseTranscription(WireModel):
    """`response_format` verbose_json."""

    task: Literal["transcribe", "translate"]
    language: str
    duration: float
    text: str
    words: list[WordObject] | None = None
    segments: list[SegmentObject] | None = None
    usage: DurationUsage


class TranscriptTextDelta(WireModel):
    """More of the text, and which part of the recording it covers."""

    type: Literal["transcript.text.delta"] = "transcript.text.delta"
    delta: str
    start: float
    """Seconds from the beginning of the recording, as the next."""
    end: float
    logprobs: list[LogprobObject] | None = None


class TranscriptTextDone(WireModel):
    """All of the text."""

    type: Literal["transcript.text.done"] = "transcript.text.done"
    text: str
    logprobs: list[LogprobObject] | None = None
    language: str
    words: list[WordObject] | None = None
    segments: list[SegmentObject] | None = None
    usage: DurationUsage


STREAM_EVENTS = ("transcript.text.delta", "transcript.text.done", "error")
