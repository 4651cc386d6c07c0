"""A document as sentences, with who speaks them and the pauses between them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from cantata.contract.data.request import TextSpan
from cantata.documents.document import Document
from cantata.jobs.job import JobSentence
from cantata.text import is_silent, strip_markup
from cantata.text.sentences import split_sentences, trimmed

PARAGRAPH_S = 0.35
"""Silence before a paragraph, beside the voice's own."""
HEADING_S = 0.8
"""Silence behind a chapter's first paragraph, beside the voice's own."""
MAX_SENTENCE_CHARACTERS = 1_500
_SPEAKER = re.compile(r"\s*(?:\*\*|__)?([^\W\d_][\w .'-]{0,39}?)(?:\*\*|__)?:(?:\*\*|__)?\s+(?=\S)")


def write_script(document: Document, speakers: Collection[str] = ()) -> tuple[JobSentence, ...]:
    """The sentences of a document, in order.

    Args:
        document: with its chapters.
        speakers: names; a paragraph or a line that begins with one and a colon is spoken by it, in
            any case.
    """
    known = {name.casefold(): name for name in speakers}
    made = list[JobSentence]()
    for chapter, content in enumerate(document.chapters):
        begins = True
        pause_s = 0.0
        for number, paragraph in enumerate(content.paragraphs):
            for speaker, text in _split_speeches(paragraph, known):
                for sentence in cut_sentences(text):
                    made.append(
                        JobSentence(len(made), chapter, sentence, speaker, pause_s, begins=begins)
                    )
                    begins, pause_s = False, 0.0
                pause_s = PARAGRAPH_S
            pause_s = 0.0 if begins else HEADING_S if number == 0 else PARAGRAPH_S
    return tuple(made)


def _split_speeches(paragraph: str, known: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Who speaks, empty for the narrator, and what."""
    if not known:
        yield "", paragraph
        return
    speaker, lines = "", list[str]()
    for line in paragraph.split("\n"):
        found = _SPEAKER.match(line)
        name = known.get(" ".join(found[1].split()).casefold()) if found else None
        if found is None or name is None:
            lines.append(line)
            continue
        if lines:
            yield speaker, "\n".join(lines)
        speaker, lines = name, [line[found.end() :]]
    yield speaker, "\n".join(lines)


def cut_sentences(text: str) -> Iterator[str]:
    """The sentences of a paragraph that have something to say; very long ones in parts."""
    spans, rest = split_sentences(text)
    for span in (*spans, trimmed(text, TextSpan(rest, len(text)))):
        sentence = text[span.start : span.end]
        for part in _cut_long(sentence):
            if not is_silent(strip_markup(part)):
                yield part


def _cut_long(sentence: str) -> Iterator[str]:
    while len(sentence) > MAX_SENTENCE_CHARACTERS:
        head = sentence[:MAX_SENTENCE_CHARACTERS]
        end = max(head.rfind(mark) for mark in (", ", "; ", "\n", " "))
        end = end + 1 if end > 0 else MAX_SENTENCE_CHARACTERS
        yield sentence[:end].strip()
        sentence = sentence[end:].strip()
    yield sentence
