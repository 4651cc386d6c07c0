"""A transcript of a whole recording, in every form that it is written in."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from cantata.api.transcription.answers import (
    DurationUsage,
    SegmentObject,
    VerboseTranscription,
    WordObject,
)
from cantata.api.transcription.parts import TranscribedPart
from cantata.api.transcription.segments import TranscriptSegment, shift_words, split_segments
from cantata.contract.data.languages import join_texts

TextForm = Literal["text", "srt", "vtt"]


@dataclass(frozen=True, slots=True)
class FinishedTranscription:
    parts: tuple[TranscribedPart, ...]
    seconds: float
    """Length of the recording."""
    asked_language: str | None
    """The language that the client named."""
    translate: bool
    """It was written in English."""

    @property
    def text(self) -> str:
        return join_texts((one.transcript.text, one.written_in) for one in self.parts)

    @property
    def language(self) -> str:
        """BCP 47 tag of the language that most of the text is in."""
        lengths: dict[str, int] = {}
        for part in self.parts:
            name, text = part.transcript.language, part.transcript.text
            lengths[name] = lengths.get(name, 0) + len(text)
        asked = self.asked_language or ""
        return max(lengths, key=lambda name: lengths[name], default=asked) or asked

    @property
    def usage(self) -> DurationUsage:
        """What the recording is counted by: whole seconds, since some clients take no fractions."""
        return DurationUsage(seconds=math.ceil(self.seconds))

    def verbose(self, *, words: bool, segments: bool) -> VerboseTranscription:
        """OpenAI's `verbose_json`."""
        return VerboseTranscription(
            task="translate" if self.translate else "transcribe",
            language=self.language,
            duration=round(self.seconds, 3),
            text=self.text,
            words=self._list_words() if words else None,
            segments=self._list_segments() if segments else None,
            usage=self.usage,
        )

    def write(self, form: TextForm) -> str:
        """Write plain text, or subtitles."""
        return write_transcript(self.verbose(words=False, segments=True), form)

    def _list_words(self) -> list[WordObject]:
        return [
            WordObject(
                word=word.text,
                start=round(word.start_s, 2),
                end=round(word.end_s, 2),
                probability=round(word.probability, 4),
            )
            for part in self.parts
            for word in shift_words(part)
        ]

    def _list_segments(self) -> list[SegmentObject]:
        pairs = [(part, one) for part in self.parts for one in split_segments(part)]
        return [_to_object(n, part, one) for n, (part, one) in enumerate(pairs)]


def write_transcript(transcript: VerboseTranscription, form: TextForm) -> str:
    """A transcript with segments as plain text, or as subtitles."""
    if form == "text":
        return f"{transcript.text}\n"
    cues = transcript.segments or []
    return _write_srt(cues) if form == "srt" else _write_vtt(cues)


def _write_srt(segments: Iterable[SegmentObject]) -> str:
    cues = (
        f"{one.id + 1}\n{_format_clock(one.start, ',')} --> {_format_clock(one.end, ',')}\n"
        f"{one.text}\n"
        for one in segments
    )
    return "\n".join(cues)


def _write_vtt(segments: Iterable[SegmentObject]) -> str:
    cues = (
        f"{_format_clock(one.start, '.')} --> {_format_clock(one.end, '.')}\n{one.text}\n"
        for one in segments
    )
    return "\n".join(["WEBVTT\n", *cues])


def _format_clock(seconds: float, mark: str) -> str:
    milliseconds = round(seconds * 1000)
    hours, rest = divmod(milliseconds, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}{mark}{rest % 1000:03}"


def _to_object(number: int, part: TranscribedPart, segment: TranscriptSegment) -> SegmentObject:
    return SegmentObject(
        id=number,
        seek=round(part.start_s * 100),
        start=round(segment.start_s, 2),
        end=round(segment.end_s, 2),
        text=segment.text,
        tokens=segment.tokens,
        temperature=segment.temperature,
        avg_logprob=round(segment.avg_logprob, 4),
        compression_ratio=round(segment.compression_ratio, 4),
        no_speech_prob=round(segment.no_speech_prob, 4),
    )
