# ruff: noqa: RUF001 (signs that look alike are meant)
"""Rules for slashes: ratings, pairs, alternatives, and words that a slash joins.

A slash between numbers is a rating ("4.5/5"), a date ("12/05", in `dates`) or a fraction (in
`number_rules`). Between words it is read "or" if they exclude each other, else not at all; between
other signs it is said.
"""

from __future__ import annotations

import re

from cantata_layers.english import numbers
from cantata_layers.english.tokens import Expansion, rule, say, word_set
from cantata_layers.english.words import is_listed

_OPPOSITES = word_set(
    "yes/no no/yes true/false on/off he/she she/he his/her his/hers him/her her/him he/him s/he "
    "himself/herself man/woman men/women boy/girl male/female mr/mrs win/lose pass/fail either/or "
    "left/right black/white up/down good/bad buy/sell open/closed open/close day/night hot/cold "
    "tea/coffee coffee/tea vegetarian/vegan mother/father mum/dad mom/dad brother/sister "
    "son/daughter husband/wife single/married child/adult accept/decline accept/reject "
    "agree/disagree in/out red/green red/blue red/black am/pm a/an is/are was/were has/have "
    "do/does this/that these/those now/never today/tomorrow morning/evening and/or she/they he/they"
)
_RATED_BEFORE = re.compile(
    r"\b(?:rat(?:e|es|ed|ing|ings)|scor(?:e|es|ed|ing)|gives?|gave|giving|gets?|got|graded?|grades?"
    r"|reviews?|stars?|pain|solid|it's a|it is a|a|an|earned|earns|is|was|average|overall|gpa)"
    r"\s?:?\s(?:it\s|them\s|this\s|that\s|him\s|her\s|a\s|an\s|of\s)?$",
    re.IGNORECASE | re.ASCII,
)
_RATED_AFTER = re.compile(
    r"\s(?:stars?|rating|points?|score|review|gpa|would|on\s(?:the|imdb|yelp|google))\b",
    re.IGNORECASE | re.ASCII,
)
_SHARE_AFTER = re.compile(
    r"\s(?:of|inch|in\.|cups?|tsp|tbsp|teaspoons?|tablespoons?|miles?|pounds?|lbs?|oz|ounces?"
    r"|majority|mile|scale|full)\b",
    re.IGNORECASE | re.ASCII,
)
_SCALES = word_set("5 10 20 100")
_SHARE_BEFORE = re.compile(r"\b(?:to|by|at)\sa?\s?$|\d\s{1,2}$", re.ASCII)
_ATTACKED_AFTER = re.compile(
    r"\s(?:attack|bombing|bomber|hijacker|memorial|inquest|commission|terror)", re.ASCII
)
_MUSIC_AFTER = re.compile(
    r"\s(?:time|rhythms?|beats?|groove|waltz|(?:time\s)?signature)\b", re.ASCII
)
_EYES_AFTER = re.compile(r"\s(?:vision|eyesight|acuity)\b", re.ASCII)
_CALCULATED_BEFORE = re.compile(r"[=+*×^<>(−-]\s?$", re.ASCII)
_CALCULATED_AFTER = re.compile(r"\s?[=+*×^<>)−-]|\s[a-z]\b", re.ASCII)


def _pair(match: re.Match[str]) -> Expansion:
    """Reads pairs that are no fraction: "6/8 time", "20/40 vision", "a 70/30 split", "11/9"."""
    top, bottom = int(match["top"]), int(match["bottom"])
    text, end = match.string, match.end()
    if (
        (bottom in (7, 9, 11) and _ATTACKED_AFTER.match(text, end))
        or (top > 1 and bottom in (2, 4, 8, 16) and _MUSIC_AFTER.match(text, end))
        or (top == 20 and _EYES_AFTER.match(text, end))
        or (top + bottom == 100 and top % 5 == bottom % 5 == 0)
        or _is_odd_fraction(match, top, bottom)
    ):
        return say(match, [*numbers.number(match["top"]), *numbers.number(match["bottom"])])
    return None


def is_calculated(match: re.Match[str]) -> bool:
    """Whether a sign of a calculation is beside a match: "x = 11/9"."""
    left = match.string[max(0, match.start() - 3) : match.start()]
    after = _CALCULATED_AFTER.match(match.string, match.end())
    return after is not None or _CALCULATED_BEFORE.search(left) is not None


def _is_odd_fraction(match: re.Match[str], top: int, bottom: int) -> bool:
    """Whether a pair such as "11/9" is a day that has become a name, since it is no calculation."""
    named = 9 <= bottom <= 12 and bottom < top <= 31
    return named and not is_calculated(match) and not _is_rated(match, match["bottom"])


def _is_rated(match: re.Match[str], bottom: str) -> bool:
    """Whether the words around a pair say that it is a rating."""
    left = match.string[max(0, match.start() - 24) : match.start()]
    after = _RATED_AFTER.match(match.string, match.end())
    return after is not None or (bottom in _SCALES and _RATED_BEFORE.search(left) is not None)


def _rating(match: re.Match[str]) -> Expansion:
    """Reads "4.5/5" and "7/10"; leaves "7/10 of them" and "a 3/5 majority" to the fractions."""
    top, bottom = match["top"], match["bottom"]
    left = match.string[max(0, match.start() - 24) : match.start()]
    end = match.end()
    decimal = "." in top + bottom
    if not decimal:
        if top == bottom or _SHARE_AFTER.match(match.string, end) or _SHARE_BEFORE.search(left):
            return None
        decided = _is_rated(match, bottom)
        if not decided and not (bottom in ("10", "100") and int(top) < int(bottom)):
            return None
        if int(top) > int(bottom) and not (decided and bottom == "10"):
            return None
    return say(match, [*numbers.number(top), "out", "of", *numbers.number(bottom)])


def _is_word(text: str) -> bool:
    return (text.isupper() and len(text) > 1) or is_listed(text.lower())


def _slash(match: re.Match[str]) -> Expansion:
    """Reads the slash between two words: "or" between opposites, nothing between other words."""
    text, start = match.string, match.start()
    left = re.search(r"[A-Za-z']{1,20}$", text[max(0, start - 20) : start])
    right = re.compile(r"[A-Za-z']{1,20}", re.ASCII).match(text, match.end())
    if left is None or right is None:
        return None
    if f"{left[0]}/{right[0]}".lower() in _OPPOSITES:
        return say(match, [] if left[0].lower() in ("and", "either") else "or")
    return [] if _is_word(left[0]) and _is_word(right[0]) else None


def _silent(match: re.Match[str]) -> Expansion:
    return []


RULES = (
    # A lens's aperture: "f/2.8".
    rule(r"(?<=\bf)/(?=\d{1,2}(?:\.\d)?(?!\d))", _silent),
    rule(r"(?<![\w/.,])(?P<top>[1-9]\d?)/(?P<bottom>[1-9]\d{0,2})(?![\w/%\"]|[.,]\d)", _pair),
    rule(
        r"(?<![\w/.,])(?P<top>\d{1,3}(?:\.\d{1,2})?)/(?P<bottom>\d{1,3}(?:\.\d)?)(?![\w/]|[.,]\d)",
        _rating,
    ),
    rule(r"/(?=[A-Za-z])", _slash),
)
