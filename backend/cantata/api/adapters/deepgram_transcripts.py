"""Transcripts in Deepgram's form: words with and without marks, utterances, paragraphs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cantata import __version__
from cantata.api.adapters.deepgram_listen_messages import (
    ListenAlternative,
    ListenChannel,
    ListenedUtterance,
    ListenedWord,
    ListenModelInfo,
    ListenParagraph,
    ListenParagraphs,
    ListenQuery,
    ListenSentence,
    RecordingResults,
)
from cantata.api.transcription.parts import TranscribedPart
from cantata.api.transcription.segments import (
    TranscriptSegment,
    join_words,
    shift_words,
    split_segments,
)
from cantata.contract.data.languages import join_texts
from cantata.contract.data.transcripts import TranscribedWord, Transcript

_PARAGRAPH_PAUSE_S = 1.5
_INNER = "'\u2019.,:-"
"""Marks that may stand within a word or a number."""
_MARKS = re.compile(
    rf"(?<!\w)[{_INNER}]+|[{_INNER}]+(?!\w)"
    '|[;!?\u2026"\u201c\u201d\u201e\u00ab\u00bb()\\[\\]{}\u00bf\u00a1\u2013\u2014'
    "\u3001\u3002\uff0c\uff1f\uff01\uff1b\uff1a\u300c\u300d\u300e\u300f]+"
)


@dataclass(frozen=True, slots=True)
class PlacedText:
    """A text, and the words in it with times from the beginning of the sound."""

    text: str
    language: str
    """BCP 47 tag; empty: unknown."""
    words: tuple[TranscribedWord, ...]
    start_s: float
    end_s: float
    confidence: float


def model_info(name: str) -> ListenModelInfo:
    """A model, as clients of Deepgram read it."""
    return ListenModelInfo(name=name, version=__version__, arch="cantata")


def strip_marks(text: str) -> str:
    """The text as it is spoken: without marks and capitals."""
    return " ".join(_MARKS.sub(" ", text).lower().split())


def make_alternative(
    transcript: Transcript, start_s: float, *, is_formatted: bool, names_language: bool
) -> ListenAlternative:
    """What was said in a part of a stream.

    Args:
        start_s: seconds of the stream before it.
        is_formatted: with marks and capitals.
        names_language: the client does not know the language.
    """
    words = shift_words(TranscribedPart(start_s, transcript))
    text = transcript.text if is_formatted else strip_marks(transcript.text)
    return ListenAlternative(
        transcript=text,
        confidence=_average_confidence(transcript),
        words=[_to_word(word) for word in words],
        languages=[transcript.language] if names_language and transcript.language else None,
    )


def make_results(parts: Sequence[TranscribedPart], query: ListenQuery) -> RecordingResults:
    """What was said in a recording, with what the client asked for."""
    texts = [_place_text(part) for part in parts if part.transcript.text]
    text = join_texts((one.text, one.language) for one in texts)
    alternative = ListenAlternative(
        transcript=text if query.is_formatted else strip_marks(text),
        confidence=_average([one.confidence for one in texts]),
        words=[_to_word(word) for one in texts for word in one.words],
        paragraphs=_make_paragraphs(parts) if query.paragraphs else None,
    )
    language = next((part.transcript.language for part in parts if part.transcript.text), "")
    is_detected = query.wanted_language is None and language
    channel = ListenChannel(
        alternatives=[alternative], detected_language=language if is_detected else None
    )
    return RecordingResults(
        channels=[channel], utterances=_make_utterances(texts, query) if query.utterances else None
    )


def _make_utterances(texts: Sequence[PlacedText], query: ListenQuery) -> list[ListenedUtterance]:
    pieces = [piece for one in texts for piece in _split(one, query.utt_split)]
    return [
        ListenedUtterance(
            start=_round_seconds(one.start_s),
            end=_round_seconds(one.end_s),
            confidence=one.confidence,
            transcript=one.text if query.is_formatted else strip_marks(one.text),
            words=[_to_word(word) for word in one.words],
            id=f"utt_{number}",
        )
        for number, one in enumerate(pieces)
    ]


def _split(one: PlacedText, pause_s: float) -> Iterator[PlacedText]:
    """The text where its words are so far apart; whole, if their times are not known."""
    if not one.words:
        yield one
    first = 0
    for number, word in enumerate(one.words):
        following = one.words[number + 1] if number + 1 < len(one.words) else None
        if following is None or following.start_s - word.end_s >= pause_s:
            words = one.words[first : number + 1]
            likely = _average([word.probability for word in words])
            text = join_words(words, one.language)
            yield PlacedText(text, one.language, words, words[0].start_s, word.end_s, likely)
            first = number + 1


def _make_paragraphs(parts: Sequence[TranscribedPart]) -> ListenParagraphs:
    groups: list[list[TranscriptSegment]] = []
    for sentence in (one for part in parts for one in split_segments(part)):
        if not groups or sentence.start_s - groups[-1][-1].end_s >= _PARAGRAPH_PAUSE_S:
            groups.append([])
        groups[-1].append(sentence)
    return ListenParagraphs(
        transcript="\n\n".join(
            join_texts((one.text, one.language) for one in group) for group in groups
        ),
        paragraphs=[_make_paragraph(group) for group in groups],
    )


def _make_paragraph(sentences: Sequence[TranscriptSegment]) -> ListenParagraph:
    return ListenParagraph(
        sentences=[
            ListenSentence(
                text=one.text, start=_round_seconds(one.start_s), end=_round_seconds(one.end_s)
            )
            for one in sentences
        ],
        num_words=sum(len(one.words) or len(one.text.split()) for one in sentences),
        start=_round_seconds(sentences[0].start_s),
        end=_round_seconds(sentences[-1].end_s),
    )


def _place_text(part: TranscribedPart) -> PlacedText:
    transcript = part.transcript
    words = tuple(shift_words(part))
    start_s, end_s = (words[0].start_s, words[-1].end_s) if words else part.speech_s
    confidence = _average_confidence(transcript)
    return PlacedText(transcript.text, transcript.language, words, start_s, end_s, confidence)


def _average_confidence(transcript: Transcript) -> float:
    if transcript.words:
        return _average([word.probability for word in transcript.words])
    if not transcript.text or transcript.avg_logprob is None:
        return 0.0
    return round(math.exp(transcript.avg_logprob), 4)


def _to_word(word: TranscribedWord) -> ListenedWord:
    return ListenedWord(
        word=strip_marks(word.text) or word.text,
        start=_round_seconds(word.start_s),
        end=_round_seconds(word.end_s),
        confidence=round(word.probability, 4),
        punctuated_word=word.text,
    )


def _average(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def _round_seconds(seconds: float) -> float:
    return round(seconds, 3)
