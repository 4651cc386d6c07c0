# ruff: noqa: RUF001 (quotes that look alike are meant)
"""Where the sentences of a text begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cantata.contract.data.request import TextSpan
from cantata_layers.english.shortcuts import ends_sentence

_MAX_CHARACTERS = 2000
"""Characters that are read at once: the time for it grows with the square."""
_LINE = re.compile(r"\S[^\n]*")
_BREAK = re.compile(r"(?<=[.!?…])[\"”’)\]]*\s+(?=\S)")
"""After a mark that may end a sentence; quotes and brackets behind it belong to neither side."""
_NAME_GOES_ON = re.compile(
    r"(?<!\S)[(\"“'‘]*"
    r"(?:Mr|Mrs|Ms|Dr|Prof|St|Mt|Ft|Gen|Gov|Sen|Rep|Capt|Lt|Col|Sgt|Cmdr|Rev|Hon|Pres|Supt|Cpl|Maj"
    r"|Adm|Fr|Msgr|[A-ZÀ-ÖØ-Þ])\.$"
)
"""A title, or the initial of a name, before the full stop."""
_TITLE_WINDOW = 16


def split_sentences(text: str) -> Iterator[TextSpan]:
    """The sentences of a text, none longer than a front end reads at once; a line ends one."""
    for sentence in _join_sentences(text):
        yield from cut_span(text, sentence, _MAX_CHARACTERS)


def cut_span(text: str, span: TextSpan, max_characters: int) -> Iterator[TextSpan]:
    """Parts of a span that are no longer than that, cut at spaces where there are any."""
    start = span.start
    while span.end - start > max_characters:
        cut = text.rfind(" ", start + max_characters // 2, start + max_characters)
        cut = start + max_characters if cut < 0 else cut
        yield TextSpan(start, cut)
        start = cut
    yield TextSpan(start, span.end)


def _join_sentences(text: str) -> Iterator[TextSpan]:
    """Without the ends that are none ("no. 5", "the U.S. Army")."""
    whole: TextSpan | None = None
    for span in _cut_at_marks(text):
        if whole is not None:
            between = text[whole.end : span.start]
            if "\n" in between or text[whole.end - 1] in "!?…" or ends_sentence(text, span.start):
                yield whole
            else:
                span = TextSpan(whole.start, span.end)
        whole = span
    if whole is not None:
        yield whole


def _cut_at_marks(text: str) -> Iterator[TextSpan]:
    for line in _LINE.finditer(text):
        start, end = line.start(), line.start() + len(line.group().rstrip())
        for found in _BREAK.finditer(text, start, end):
            if _may_end(text, found.start(), text[found.end()]):
                yield TextSpan(start, found.start())
                start = found.end()
        yield TextSpan(start, end)


def _may_end(text: str, end: int, following: str) -> bool:
    """Whether a sentence may end at the mark before `end`. `following`: the first letter after
    it."""
    if following.islower():
        return False
    return _NAME_GOES_ON.search(text, max(0, end - _TITLE_WINDOW), end) is None
