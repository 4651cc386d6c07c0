"""Finding complete sentences in text that is still arriving."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator

from cantata.contract.data.request import TextSpan
from cantata.text.arriving import find_markup_spans
from cantata.text.reading import strip_markup

_END = re.compile(
    r"""
    (?<![.!?\u2026]) [.!?\u2026]++ ["')\]\u2019\u201d*_~`]*+ (?=\s)
        # a terminator, closing marks, and the space that proves it
    | [\u3002\uff01\uff1f]+ [\u300d\u300f\u2019\u201d\uff09]*
        # scripts that write no space behind their full-width terminators
    | \n[^\S\n]*+\n               # a paragraph
    """,
    re.VERBOSE,
)
# Nothing here may take more than linear time: clients choose the text.
_CLAUSE_END = re.compile(r"[,;:\u2013\u2014]++[\"')\]\u2019\u201d]*+(?=\s)")
MIN_CLAUSE = 15
"""Minimum letters and digits of a clause."""
_LAST_WORD = re.compile(r"([A-Za-z.]+)\.$")
_TAIL = 32
"""Characters that decide about the last word."""
_ABBREVIATIONS = frozenset(
    ("mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "vs", "etc", "e.g", "i.e", "vol", "inc")
)
_BEFORE_NUMBERS = frozenset(("no", "nos", "fig", "figs", "ch", "chap", "p", "pp", "art", "eq"))
"""Abbreviations where a number follows; elsewhere they may end a sentence."""
_NEXT = re.compile(r"\s*+(\S?)")


def split_sentences(text: str) -> tuple[list[TextSpan], int]:
    """Cut off the sentences that are certainly complete.

    A piece without a letter or digit is not a sentence and stays with what follows; so does a
    pause. Markup is never cut. Nothing is lost: the sentences and the rest together are `text`, but
    for spaces around sentences.

    Returns:
        The complete sentences, and where the rest begins, which more text may still change.
    """
    sentences: list[TextSpan] = []
    marks = find_markup_spans(text)
    start = seen = 0
    has_words = False
    for end in _END.finditer(text):
        if is_inside(end.start(), marks):
            continue
        has_words = has_words or _has_words(text[seen : end.end()])
        seen = end.end()
        if has_words and not _ends_in_abbreviation(text, max(start, seen - _TAIL), seen):
            sentences.append(trimmed(text, TextSpan(start, seen)))
            start, has_words = seen, False
    return sentences, trimmed(text, TextSpan(start, len(text))).start if sentences else start


def split_clauses(text: str) -> tuple[list[TextSpan], int]:
    """Cut off the clauses that are certainly complete: as `split_sentences`, and also after commas
    and the like, if that leaves no clause of fewer than `MIN_CLAUSE` letters."""
    sentences, rest = split_sentences(text)
    marks = find_markup_spans(text)
    clauses: list[TextSpan] = []
    for sentence in sentences:
        cuts, start = _cut_clauses(text, sentence, marks, least_rest=MIN_CLAUSE)
        clauses += [*cuts, trimmed(text, TextSpan(start, sentence.end))]
    cuts, start = _cut_clauses(text, TextSpan(rest, len(text)), marks, least_rest=0)
    return [*clauses, *cuts], trimmed(text, TextSpan(start, len(text))).start if cuts else rest


def _cut_clauses(
    text: str, span: TextSpan, marks: list[TextSpan], least_rest: int
) -> tuple[list[TextSpan], int]:
    """The clauses in a span, and where what follows them begins: `least_rest` letters or more."""
    clauses: list[TextSpan] = []
    start = seen = span.start
    letters, left = 0, _count_letters(text[span.start : span.end])
    for end in _CLAUSE_END.finditer(text, span.start, span.end):
        new = _count_letters(text[seen : end.end()])
        seen, letters, left = end.end(), letters + new, left - new
        if letters >= MIN_CLAUSE and left >= least_rest and not is_inside(end.start(), marks):
            clauses.append(trimmed(text, TextSpan(start, seen)))
            start, letters = seen, 0
    return clauses, start


def _count_letters(piece: str) -> int:
    return sum(map(str.isalnum, strip_markup(piece)))


def trimmed(text: str, span: TextSpan) -> TextSpan:
    """The span without the spaces at its ends."""
    piece = text[span.start : span.end]
    start = span.start + len(piece) - len(piece.lstrip())
    return TextSpan(start, start + len(piece.strip()))


def iterate_line_starts(
    text: str, spans: list[TextSpan], rest: int, *, line_start: bool
) -> Iterator[bool]:
    """Whether each of the spans, and last the rest, begins a line; `line_start` says so of `text`.

    Args:
        text: with only spaces between the spans and the rest.
        spans: in order.
        rest: where the rest begins.
    """
    end = 0
    for span in (*spans, TextSpan(rest, rest)):
        yield line_start or "\n" in text[end : span.start]
        line_start, end = False, span.end


def is_inside(position: int, spans: list[TextSpan]) -> bool:
    """Whether a character is inside one of the spans, which are in order."""
    after = bisect(spans, position, key=lambda span: span.start)
    return after > 0 and position < spans[after - 1].end


def _has_words(piece: str) -> bool:
    return any(character.isalnum() for character in strip_markup(piece))


def _ends_in_abbreviation(text: str, start: int, end: int) -> bool:
    last = _LAST_WORD.search(text[start:end].rstrip())
    if last is None:
        return False
    word = last.group(1)
    initial = len(word) == 1 and word.isupper() and word != "I"
    return initial or word.lower() in _ABBREVIATIONS or _may_precede_number(word, text, end)


def _may_precede_number(word: str, text: str, end: int) -> bool:
    """Whether a number follows, or what follows has not arrived yet."""
    following = _NEXT.match(text, end)
    assert following is not None
    return word.lower() in _BEFORE_NUMBERS and (not following[1] or following[1].isdigit())
