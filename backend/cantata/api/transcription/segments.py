"""Cuts transcripts into sentences, as subtitles need them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cantata.api.transcription.parts import TranscribedPart
from cantata.contract.data.languages import join_texts
from cantata.contract.data.transcripts import TranscribedWord

_MAX_CHARACTERS = 84
"""Of a segment that ends at a comma or a pause: two lines of subtitles."""
_MAX_S = 7.0
_PAUSE_S = 0.6
_SENTENCE_ENDS = (".", "?", "!", "\u2026", "\u3002", "\uff1f", "\uff01")
_CLAUSE_ENDS = (",", ";", ":", "\u3001", "\uff0c")


@dataclass(frozen=True, slots=True)
class TranscriptSegment:
    """A sentence, or a part of a long one."""

    text: str
    language: str
    """BCP 47 tag of the text; empty: unknown."""
    start_s: float
    """Seconds from the beginning of the recording, as the next."""
    end_s: float
    words: tuple[TranscribedWord, ...]
    """With times from the beginning of the recording."""
    temperature: float
    avg_logprob: float
    no_speech_prob: float

    @property
    def tokens(self) -> list[int]:
        """The words' tokens, in the model's vocabulary."""
        return [token for word in self.words for token in word.tokens]

    @property
    def compression_ratio(self) -> float:
        """Bytes of the text over those of its compressed form."""
        data = self.text.encode()
        return len(data) / len(zlib.compress(data)) if data else 0.0


def split_segments(part: TranscribedPart) -> Iterator[TranscriptSegment]:
    """The sentences of a part; without times of words, the part is one segment."""
    transcript = part.transcript
    if not transcript.text:
        return
    if not transcript.words:
        yield _make_segment(part, (), transcript.text, part.speech_s)
        return
    group: list[TranscribedWord] = []
    for number, word in enumerate(transcript.words):
        group.append(word)
        following = transcript.words[number + 1] if number + 1 < len(transcript.words) else None
        if following is None or _ends_segment(group, following):
            text = join_words(group, part.written_in)
            words = tuple(_shift(one, part.start_s) for one in group)
            yield _make_segment(part, words, text, (words[0].start_s, words[-1].end_s))
            group = []


def shift_words(part: TranscribedPart) -> list[TranscribedWord]:
    """A part's words with times from the beginning of the recording."""
    return [_shift(word, part.start_s) for word in part.transcript.words]


def join_words(words: Iterable[TranscribedWord], language: str) -> str:
    """The text of words, with spaces where their language has them."""
    return join_texts((word.text, language) for word in words)


def _ends_segment(group: Sequence[TranscribedWord], following: TranscribedWord) -> bool:
    last = group[-1]
    if last.text.endswith(_SENTENCE_ENDS) or following.start_s - last.end_s >= _PAUSE_S:
        return True
    length = sum(len(word.text) + 1 for word in group)
    is_long = length >= _MAX_CHARACTERS / 2 and last.text.endswith(_CLAUSE_ENDS)
    too_long = length + len(following.text) > _MAX_CHARACTERS
    return is_long or too_long or following.end_s - group[0].start_s > _MAX_S


def _make_segment(
    part: TranscribedPart,
    words: tuple[TranscribedWord, ...],
    text: str,
    times: tuple[float, float],
) -> TranscriptSegment:
    transcript = part.transcript
    likely = [math.log(max(word.probability, 1e-10)) for word in words]
    logprob = sum(likely) / len(likely) if likely else transcript.avg_logprob or 0.0
    return TranscriptSegment(
        text,
        part.written_in,
        *times,
        words,
        transcript.temperature,
        logprob,
        transcript.no_speech_prob or 0.0,
    )


def _shift(word: TranscribedWord, seconds: float) -> TranscribedWord:
    return replace(word, start_s=word.start_s + seconds, end_s=word.end_s + seconds)
