"""One text as it is spoken: the segments that a pipeline runs and the silences between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cantata.contract.catalogue import find_language
from cantata.contract.data.chunks import WordTiming
from cantata.contract.data.errors import InvalidRequest, RequestFailed
from cantata.contract.data.request import PipelineRequest, SpeechRequest
from cantata.contract.model.plugin import RequestBuilder
from cantata.contract.service import SpokenWord
from cantata.text import Passage, TextPause, read_markup, with_pauses_inside
from cantata.text.lexicon import apply_lexicon
from cantata.text.ssml import MAX_RATE, MIN_RATE

WORDLESS_S = 0.2
"""The silence that a text without words is."""


@dataclass(frozen=True, slots=True)
class TextSegment:
    """What the pipeline runs as one request."""

    request: PipelineRequest
    passage: Passage
    """The text that it was built from; its sound is as loud as that says."""


def plan_segments(
    builder: RequestBuilder, request_id: str, request: SpeechRequest
) -> list[TextSegment | TextPause]:
    """Read a text's markup, cut it at its pauses and build the segments between them, at the
    model's own pace that is nearest to the requested speed. A model that reads pauses by itself
    gets those between words. A text without words, such as "..." or an emoji, is a short silence:
    programs that cut a text into sentences send such.

    Raises:
        InvalidRequest: the text is in a script that the model cannot read, or a pause or
            an option cannot be served.
    """
    parts: list[TextSegment | TextPause] = []
    can = builder.capabilities
    language = find_language(builder.voices, can, request.voice, request.options)
    read = read_markup(request.text, can, language=language, line_start=request.line_start)
    if can.pauses:
        read = with_pauses_inside(read)
    for number, part in enumerate(read):
        if isinstance(part, TextPause):
            parts.append(part)
            continue
        if request.lexicon:
            part = apply_lexicon(part, request.lexicon, phones=can.phones)
        speed = min(max(request.speed * part.prosody.rate, MIN_RATE), MAX_RATE)
        pace = can.pace(speed)
        stretch = speed / pace
        try:
            passage = replace(_build_passage_request(request, part), speed=pace, stretch=stretch)
            built = builder.build(f"{request_id}.{number}", passage)
        except InvalidRequest as error:
            if part.has_words or error.param not in (None, "input"):
                raise
            continue
        if part.is_silent:
            continue  # built only to check the other options: a talker would make up a sound
        for one in built:
            if one.silence_before_s:
                parts.append(TextPause(one.silence_before_s / stretch))
            parts.append(TextSegment(replace(one, batch=request.batch, stretch=stretch), part))
    if not parts and not request.continued:
        parts.append(TextPause(WORDLESS_S))
    return parts


def _build_passage_request(request: SpeechRequest, passage: Passage) -> SpeechRequest:
    options = request.options
    if passage.language is not None:
        options = {**options, "language": passage.language}
    return replace(request, text=passage.text, inflections=passage.inflected, options=options)


def locate_words(
    segment: TextSegment, timings: Iterable[WordTiming], began_s: float
) -> tuple[SpokenWord, ...]:
    """Place a segment's timings in the caller's text and on the utterance's clock.

    Words of one span, such as those of a number, become one.

    Args:
        began_s: when the segment's first sample is heard.

    Raises:
        RequestFailed: the stage timed a word that the segment does not have.
    """
    words: list[SpokenWord] = []
    spans = segment.request.words
    for timing in timings:
        if not 0 <= timing.index < len(spans):
            raise RequestFailed(f"word {timing.index} of {len(spans)} was timed")
        span = segment.passage.source(spans[timing.index])
        word = SpokenWord(
            text_start=span.start,
            text_end=span.end,
            start_s=began_s + timing.start_s,
            end_s=began_s + timing.end_s,
        )
        if words and (words[-1].text_start, words[-1].text_end) == (word.text_start, word.text_end):
            word = replace(words.pop(), end_s=word.end_s)
        words.append(word)
    return tuple(words)
