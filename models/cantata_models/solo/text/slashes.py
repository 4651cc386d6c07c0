"""Rules for slashes: ratings, alternatives, and words that a slash joins.

A slash between numbers is a rating ("4.5/5"), a date ("12/05", in `dates`) or a fraction (in
`number_rules`). Between words it is read "or" if they exclude each other, else not at all; between
other signs it is said.
"""

from __future__ import annotations

import re

from cantata_models.solo.text import numbers
from cantata_models.solo.text.tokens import Expansion, rule, say, word_set
from cantata_models.solo.text.words import is_listed

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


def _rating(match: re.Match[str]) -> Expansion:
    """Reads "4.5/5" and "7/10"; leaves "7/10 of them" and "a 3/5 majority" to the fractions."""
    top, bottom = match["top"], match["bottom"]
    left = match.string[max(0, match.start() - 24) : match.start()]
    end = match.end()
    decimal = "." in top + bottom
    if not decimal:
        if top == bottom or _SHARE_AFTER.match(match.string, end) or _SHARE_BEFORE.search(left):
            return None
        decided = _RATED_AFTER.match(match.string, end) or (
            bottom in _SCALES and _RATED_BEFORE.search(left)
        )
        if not decided and not (bottom in ("10", "100") and int(top) < int(bottom)):
            return None
        if int(top) > int(bottom):
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
    rule(
        r"(?<![\w/.,])(?P<top>\d{1,3}(?:\.\d{1,2})?)/(?P<bottom>\d{1,3}(?:\.\d)?)(?![\w/]|[.,]\d)",
        _rating,
    ),
    rule(r"/(?=[A-Za-z])", _slash),
)
