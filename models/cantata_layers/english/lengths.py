# ruff: noqa: RUF001 (dashes, primes and signs that look alike are what this file is about)
"""Rules for lengths with marks, 12" and 6', for inches, and for angles with the same marks.

After a figure the same mark may also close a quotation: "I am 12" she said. `_closes_quotation`
decides.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from cantata_layers.english import numbers
from cantata_layers.english.number_rules import NUMBER
from cantata_layers.english.tokens import Expansion, rule, say, say_span

_WINDOW = 200
_COMPASS = {"N": "north", "S": "south", "E": "east", "W": "west"}
_FRACTION = r"(?:\d{1,3}(?:\s{1,2}|-))?\d{1,2}/\d{1,2}"
_LENGTH = rf"(?:{_FRACTION}|\d{{1,3}}(?:\.\d{{1,3}})?)"
# What else may come between the figure and its noun: "2\" x 4\" boards", "3\" or 4\" pipe".
_OTHERS = (
    rf"(?:\s?(?:[x×–-]|\b(?:by|and|or|to)\b)\s?(?:an?\s)?(?:\d{{1,3}}'\s?)?{_LENGTH}['\"]){{0,3}}"
)
_NO_NOUN = (
    r"(?:and|or|by|but|the|an?|of|in|on|at|to|for|from|with|when|was|were|are|is|has|had|if|as|than"
    r"|that|which|who|per|each|across|over|under|off|out|after|before|while|then|so|not|we|he|she|it"
    r"|they|you|said|wide|tall|long|high|deep|thick|apart|away|above|below|into|onto|shorter|taller"
    r"|longer|more|less|only|behind|ahead|down|up|here|there|square|left|right)"
)
_DESCRIBES = re.compile(rf"{_OTHERS}(?:\s\(?(?!{_NO_NOUN}\b)[A-Za-z]{{2}}|-[a-z])", re.ASCII)
_DETERMINED = re.compile(
    r"\b(?:an?|the|this|that|each|every|my|your|our)\s$", re.IGNORECASE | re.ASCII
)
_QUOTE_OPENS = re.compile(r"(?<![^\s(\[{=:–—-])\"(?=\S)|(?<=[,;/])\"(?=\w)", re.ASCII)
_SINGLE_OPENS = re.compile(
    r"(?<![\w.,!?])'(?=\w)(?!\d0s\b|(?:tis|twas|til|em|cause|n)\b)", re.ASCII | re.IGNORECASE
)
_SINGLE_CLOSES = re.compile(r"(?<=[\w.,!?])'(?!\w)", re.ASCII)


def _closes_quotation(text: str, place: int) -> bool:
    """Whether the mark at `place`, which follows a figure, ends a quotation instead.

    It does if a quotation is open and no later mark can end it: 'the 24" and the 27" models,"'.
    """
    start = max(0, place - _WINDOW, text.rfind("\n", 0, place) + 1)
    if text[place] == "'":
        opened = [found.start() for found in _SINGLE_OPENS.finditer(text, start, place)]
        closed = [found.start() for found in _SINGLE_CLOSES.finditer(text, start, place)]
        return bool(opened) and (not closed or closed[-1] < opened[-1])
    if _QUOTE_OPENS.search(text, start, place) is None:
        return False
    end = text.find("\n", place, place + _WINDOW)
    marks = _quotation_marks(text, start, end if end >= 0 else place + _WINDOW)
    is_open = False
    for mark, closes in _with_ends(marks):
        if mark.place == place:
            return is_open and closes
        is_open = mark.kind is _Kind.OPENS or (is_open and not closes)
    return False


class _Kind(Enum):
    OPENS = "opens"
    CLOSES = "closes"
    FIGURE = "after a figure"


class _Mark(NamedTuple):
    place: int
    kind: _Kind


def _quotation_marks(text: str, start: int, end: int) -> list[_Mark]:
    marks = []
    for place in (found.start() + start for found in re.finditer('"', text[start:end])):
        after_figure = place > 0 and text[place - 1].isdigit()
        kind = _Kind.FIGURE if after_figure else _Kind.CLOSES
        marks.append(_Mark(place, _Kind.OPENS if _QUOTE_OPENS.match(text, place) else kind))
    return marks


def _with_ends(marks: list[_Mark]) -> list[tuple[_Mark, bool]]:
    """Pairs each mark with whether it closes an open quotation.

    One after a figure does unless the next mark that follows no figure closes it.
    """
    pairs: list[tuple[_Mark, bool]] = []
    following = _Kind.OPENS
    for mark in reversed(marks):
        if mark.kind is _Kind.FIGURE:
            pairs.append((mark, following is not _Kind.CLOSES))
            continue
        pairs.append((mark, mark.kind is _Kind.CLOSES))
        following = mark.kind
    return pairs[::-1]


def _marked(match: re.Match[str]) -> Expansion:
    """Reads 12" and 6' as inches and feet, singular before a noun: "a 12 inch pizza"."""
    text, mark = match.string, match["mark"]
    if mark != "''" and _closes_quotation(text, match.start("mark")):
        return None
    one, many = ("foot", "feet") if mark == "'" else ("inch", "inches")
    length = match["length"]
    left = text[max(0, match.start() - 8) : match.start()]
    single = (
        length == "1"
        or numbers.is_below_one(length)
        or _DETERMINED.search(left)
        or _DESCRIBES.match(text, match.end())
    )
    words = numbers.quantity(length)
    # "a half inch pipe", not "a one half inch pipe".
    half = numbers.is_below_one(length) and words[0] == "one" and re.search(r"\b[Aa]\s$", left)
    return say(match, [*(words[1:] if half else words), one if single else many])


def _feet_and_inches(match: re.Match[str]) -> Expansion:
    return say(match, [*numbers.number(match["feet"]), "foot", *numbers.quantity(match["inches"])])


def _angle(match: re.Match[str]) -> Expansion:
    """Reads "40°42'N" as a position."""
    words = [*numbers.number(match["degrees"]), "degrees"]
    words += [*numbers.number(match["minutes"]), "minutes"]
    if match["seconds"]:
        words += [*numbers.number(match["seconds"]), "seconds"]
    return say(match, [*words, *([_COMPASS[match["side"]]] if match["side"] else [])])


def _inches(match: re.Match[str]) -> Expansion:
    length = match["length"]
    single = length == "1" or numbers.is_below_one(length)
    return say_span(
        match.start(), match.end(), [*numbers.quantity(length), "inch" if single else "inches"]
    )


RULES = (
    rule(
        r"(?<![\w.])(?P<degrees>\d{1,3})°\s?(?P<minutes>\d{1,2}(?:\.\d{1,4})?)'"
        r"(?:\s?(?P<seconds>\d{1,2}(?:\.\d{1,3})?)(?:\"|''))?\s?(?P<side>[NSEW](?!\w))?",
        _angle,
    ),
    rule(
        r"(?<![\w./])(?P<feet>\d{1,2})'[\s-]?"
        r"(?P<inches>(?:1[01]|\d)(?:(?:\.\d|(?:\s{1,2}|-)\d{1,2}/\d{1,2}))?)(?:\"|'')(?!\w)",
        _feet_and_inches,
    ),
    rule(
        r"(?<![\w.])(?P<feet>\d{1,2})(?:'|\s?ft\.?\s)(?P<inches>\d{1,2})(?:\s?in\b)?(?![\w\"'])",
        _feet_and_inches,
    ),
    rule(
        rf"(?:(?<![\w./])|(?<=[\"']x))(?P<length>{_LENGTH})(?P<mark>''|[\"'])(?!\w(?<!x(?=\d)))",
        _marked,
    ),
    rule(
        rf"(?<![\w.])(?P<length>{_FRACTION}|{NUMBER})\s?in(?:\.(?=\s[a-z])|(?=\s?[x×]\s?\d"
        rf"|\s(?:by|wide|tall|long|high|deep|thick)\b))",
        _inches,
    ),
    rule(r"(?<![\w.])(?P<length>\d{1,4}(?:\.\d{1,3})?)in(?!\w)", _inches),
    rule(rf"(?<![\w./])(?P<length>{_FRACTION})\sin(?=[.,;)]|$)", _inches),
    rule(r"(?<=[x×]\s)(?P<length>\d{1,4}(?:\.\d{1,3})?)\sin(?!\w)", _inches),
)
