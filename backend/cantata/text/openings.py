"""Finding the beginning of an unfinished sentence that may be spoken by itself."""

from __future__ import annotations

import re
from enum import IntEnum

from cantata.contract.data.request import TextSpan
from cantata.text.arriving import find_markup_spans
from cantata.text.reading import strip_markup
from cantata.text.sentences import is_inside, trimmed

MIN_WORDS = 4
"""Minimum words of an opening; of scripts without spaces, two characters count as a word."""
_MIN_PHRASE_WORDS, _MIN_BOUND_WORDS = 5, 7
"""The same of openings that end at a phrase, and before "of"."""


class OpeningEnd(IntEnum):
    """What an opening ends at, the better end first."""

    CLAUSE = 0
    """A comma, a colon, a dash, the end of a line, or before a word that begins a clause."""
    PHRASE = 1
    """Any of these, or before a preposition, or the verb of a long subject."""


# Nothing here may take more than linear time: clients choose the text.
_SUBJECT = (
    r"(?:I|you|he|she|it|we|they|there|this|these|those|the|an?|my|your|his|her|its|our|their)\b"
)
_CUT = re.compile(
    rf"""
    (?P<mark> (?<![.,;:\u2013\u2014]) [,;:\u2013\u2014]++ ["')\]\u2019\u201d*_]*+ (?=\s\s?\S)
        # with the word behind it, which decides about dates and numbers
    | (?<=[^\W\d_]) [,;] \Z
        # behind a letter no later text decides anything
    | \s - (?=\s)
    | [\u060c\u061b] (?=\s)
    | [\u3001\uff0c\uff1a\uff1b]++ [\u300d\u300f\u2019\u201d\uff09]*+ (?=.) )
        # scripts that write no space behind their full-width marks
    | (?P<line> (?=\n[^\S\n]{{0,8}}\S) )
    | (?P<clause>
        (?=\s(?:but|because|which|who|whose|when|while|whereas|although|though|unless|until|where
            |weil|obwohl|sondern|mais|parce|lorsque|puisque|pero|porque|aunque|mientras|mentre
            |perch\u00e9)\s)
      | (?=\s(?:and|or|so|if)\s{_SUBJECT}\s)
      | (?=\sthat\s(?:{_SUBJECT}
            |is|are|was|were|can|could|will|would|has|have|may|[a-z]+[a-rt-z]s)\s) )
        # "that exists" begins a clause, "that class" does not
    | (?P<phrase> (?=\s(?:to|in|on|at|for|with|from|by|about|into|over|between|through|during
        |without|is|are|was|were|has|have|had|can|will|would)\s) )
    | (?P<bound> (?=\sof\s) )
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{2}|[^\W_]+(?:['\u2019.,][^\W_]+)*")
_LAST_WORD = re.compile(r"[\w.'\u2019]+\W*$")
_TAIL = 32
"""Characters that decide about the last word."""
_CLINGING = re.compile(
    r"""an?|the|my|your|his|her|its|our|their|this|these|those|some|any|no|and|or|but|nor|so|as|than
    |that|if|of|to|in|on|at|by|for|from|with|about|into|over|under|between|through|during|without
    |is|are|was|were|be|been|has|have|had|do|does|did|will|would|can|could|may|might|not|very|even
    |only|just|such|also|exactly""",
    re.VERBOSE | re.IGNORECASE,
)
"""Words behind which nobody pauses."""
_DATE = re.compile(r"\d,\s{1,2}\d")
_BRACKETS = ("()", "[]", "{}")
"""Each opens and closes."""
_OWN_ENDS = ("`", "**")
_MIN_WORDS = {"phrase": _MIN_PHRASE_WORDS, "bound": _MIN_BOUND_WORDS}


class _OpenSigns:
    """The brackets and the like that a text has opened and not closed yet."""

    def __init__(self) -> None:
        self._depths = dict.fromkeys(_BRACKETS, 0)
        self._odd = dict.fromkeys(_OWN_ENDS, 0)

    def take(self, piece: str) -> None:
        for pair in self._depths:
            self._depths[pair] += piece.count(pair[0]) - piece.count(pair[1])
        for sign in self._odd:
            self._odd[sign] ^= piece.count(sign) & 1

    def any(self) -> bool:
        return any(self._depths.values()) or any(self._odd.values())


def find_opening(text: str, weakest_end: OpeningEnd) -> tuple[TextSpan, int] | None:
    """The longest beginning of an unfinished sentence behind which a speaker may pause: of
    `MIN_WORDS` words at least. Brackets, code, emphasis and markup are never cut, nor are tables,
    dates and abbreviations.

    Args:
        text: what `split_sentences` left.

    Returns:
        The opening, and where the rest begins; None if there is none yet.
    """
    if "|" in text:
        return None
    marks, signs = find_markup_spans(text), _OpenSigns()
    words = seen = end = 0
    for cut in _CUT.finditer(text):
        piece = text[seen : cut.end()]
        words += len(_WORD.findall(strip_markup(piece)))
        signs.take(piece)
        seen = cut.end()
        min_words = _MIN_WORDS.get(cut.lastgroup or "", MIN_WORDS)
        if min_words > MIN_WORDS and weakest_end is OpeningEnd.CLAUSE:
            continue
        if not (words < min_words or signs.any() or is_inside(seen, marks) or _clings(text, cut)):
            end = seen
    if not end:
        return None
    return trimmed(text, TextSpan(0, end)), trimmed(text, TextSpan(end, len(text))).start


def _clings(text: str, cut: re.Match[str]) -> bool:
    """Whether what precedes a cut belongs to what follows it."""
    last = _LAST_WORD.search(text[max(0, cut.end() - _TAIL) : cut.end()])
    if last is None or cut.lastgroup == "line":
        return False
    word = last[0].rstrip(",;:\u2013\u2014 \"')]*_")
    if cut.lastgroup == "mark":
        return "." in word or bool(_DATE.match(text, cut.start() - 1))
    return _CLINGING.fullmatch(word) is not None
