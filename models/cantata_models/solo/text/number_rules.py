# ruff: noqa: RUF001 (dashes, primes and signs that look alike are what this file is about)
"""Rules for numbers: plain, ordinal, fractions, powers, versions, codes, and Roman numerals."""

from __future__ import annotations

import re

from cantata_models.solo.text import numbers
from cantata_models.solo.text.folding import SUPERSCRIPTS
from cantata_models.solo.text.tokens import Expansion, Item, Pause, Strength, rule, say, say_span
from cantata_models.solo.text.wordlists import word_set

NUMBER = r"(?:\d{1,3}(?:,\d{2,3}){0,9},\d{3}(?!\d)|\d{1,40})(?:\.\d{1,40})?"
"""A number without sign. Repetitions are bounded so that hostile text costs linear time."""

SIGN = r"(?:(?<![\w)%])[-−](?=[\d.]))?"

_COMMON_PAIRS = {
    "24/7": "twenty four seven",
    "9/11": "nine eleven",
    "20/20": "twenty twenty",
    "50/50": "fifty fifty",
    "60/40": "sixty forty",
    "80/20": "eighty twenty",
}

# A count before a plural is a quantity, not a year: "1234 people", "1500 apples".
_PLURAL_FOLLOWS = re.compile(
    r"\s(?:people|men|women|children|more|feet|(?!(?:was|is|has|as|its|his|this|does|us|versus|thus"
    r"|always|across|perhaps|sales|marks|means|brings|sees|remains)\b)[a-z]{2,20}s)\b",
    re.ASCII,
)

_CALLED = re.compile(r"\b(?:call|called|calling|dial|dialed)\s$", re.ASCII | re.IGNORECASE)
_STATE = re.compile(r"\b[A-Z]\.?[A-Z]\.?\s$", re.ASCII)
_NUMBERED_PLACE = re.compile(
    r"\b(?:room|flight|highway|route|suite|apartment|bus|interstate|error|status)\s$",
    re.ASCII | re.IGNORECASE,
)
_COUNTED_BY_ROMAN = word_set(
    "war chapter ch vol fig sec part volume book act scene section phase type class title article "
    "appendix stage level episode bowl fantasy grade figure table division category group mark "
    "schedule annex tier unit module symphony apollo gemini canto"
)
_RULERS = word_set(
    "henry louis george edward charles elizabeth james richard william mary pius paul benedict "
    "leo gregory clement innocent urban alexander napoleon philip ferdinand catherine nicholas "
    "peter ivan frederick wilhelm ramses ramesses cleopatra xerxes darius ptolemy otto haakon "
    "carl gustav christian margaret carlos alfonso felipe pedro francis constantine justinian "
    "sixtus julius boniface celestine victor umberto leopold albert mehmed selim murad suleiman "
    "thutmose amenhotep artaxerxes harald olaf eric robert david edmund joseph maximilian "
    "theodosius valentinian rama michael baldwin"
)
_WORD_BEFORE = re.compile(r"([A-Za-z]{2,20})\.?\s{1,3}$", re.ASCII)


def _plain(match: re.Match[str]) -> Expansion:
    text = match[0]
    before = match.string[max(0, match.start() - 20) : match.start()]
    if (text == "911" and _CALLED.search(before)) or (len(text) == 5 and _STATE.search(before)):
        return say(match, numbers.digits(text))
    if re.fullmatch(r"\d{3}", text) and _NUMBERED_PLACE.search(before):
        return say(match, numbers.grouped(text))
    if re.fullmatch(r"\d{4}", text) and not _PLURAL_FOLLOWS.match(match.string, match.end()):
        return say(match, numbers.year(int(text)) if text[0] != "0" else numbers.digits(text))
    return say(match, numbers.number(text))


def _ordinal(match: re.Match[str]) -> Expansion:
    return say(match, numbers.ordinal(int(match["number"].replace(",", ""))))


def _fraction(match: re.Match[str]) -> Expansion:
    pair = _COMMON_PAIRS.get(match[0])
    if pair is not None:
        return say(match, pair)
    if match["top"] == match["bottom"]:
        count = numbers.cardinal(int(match["top"]))
        return say(match, [*count, "out", "of", *count])
    if match["bottom"] == "1":
        return say(match, [*numbers.number(match["top"]), "to", "one"])
    words = numbers.fraction(int(match["top"]), int(match["bottom"]))
    if match["whole"] is None:
        return say(match, words)
    if words[0] == "one" and words[1] != "over":
        words = ["an" if words[1].startswith("e") else "a", *words[1:]]
    return say(match, [*numbers.number(match["whole"]), "and", *words])


def _scientific(match: re.Match[str]) -> Expansion:
    power = numbers.cardinal(int(match["exponent"].replace("−", "-")))
    return say(match, [*numbers.number(match["number"]), "times", "ten", "to", "the", *power])


def _power(match: re.Match[str]) -> Expansion:
    value = int("".join(str(SUPERSCRIPTS.index(char)) for char in match[0]))
    if value in (2, 3):
        return say(match, "squared" if value == 2 else "cubed")
    return say(match, ["to", "the", *numbers.ordinal(value)])


def _version(match: re.Match[str]) -> Expansion:
    prefix = ["version"] if match["v"] else []
    words = numbers.number(match["first"])
    for part in match["rest"].split(".")[1:]:
        words += ["point", *numbers.number(part)]
    return say(match, prefix + words)


def _code(match: re.Match[str]) -> Expansion:
    items: list[Item] = []
    for part in re.finditer(r"\d+", match[0]):
        start = match.start() + part.start()
        items += [*say_span(start, start + len(part[0]), numbers.digits(part[0]))]
        items.append(Pause(Strength.CLAUSE))
    return items[:-1]


def _roman(match: re.Match[str]) -> Expansion:
    value = numbers.roman(match["numeral"])
    before = _WORD_BEFORE.search(match.string, max(0, match.start() - 24), match.start())
    if value is None:
        return None
    if re.compile(r"\s+(?:century|dynasty|Olympiad)\b").match(match.string, match.end()):
        return say(match, numbers.ordinal(value)) if len(match[0]) > 1 else None
    if before is None:
        return None
    word = before[1].lower()
    if word in _COUNTED_BY_ROMAN and (before[1] != word or len(match["numeral"]) > 1):
        return say(match, _possessive(numbers.cardinal(value), match))
    # "Henry I think" is a pronoun; "Henry I of England" and "Henry I." are not.
    alone = match[0] == "I" and not re.compile(r"\s+of\b|\s*(?:[.,;:!?)]|$)").match(
        match.string, match.end()
    )
    if word in _RULERS and before[1] != word and not alone:
        return say(match, ["the", *_possessive(numbers.ordinal(value), match)])
    return None


def _possessive(words: list[str], match: re.Match[str]) -> list[str]:
    return [*words[:-1], words[-1] + (match["possessive"] or "")]


def _by(match: re.Match[str]) -> Expansion:
    """Reads the first side of "1920x1080" or "3 x 4" and the sign."""
    return say(match, [*(numbers.grouped(match["side"])), "by"])


def _hash(match: re.Match[str]) -> Expansion:
    return say(match, ["number", *numbers.number(match["number"])])


RULES = (
    rule(r"(?<!\w)(?P<numeral>[IVXLC]{1,10})(?P<possessive>'s)?(?![\w'])", _roman),
    rule(rf"(?P<number>{NUMBER})[eE](?P<exponent>[-+−]?\d{{1,3}})(?!\w)", _scientific),
    rule(
        r"(?<![\w.])(?P<v>[vV]?)(?P<first>\d{1,6})(?P<rest>(?:\.\d{1,6}){2,5})(?![\w.]\d)", _version
    ),
    rule(r"(?<![\w.])(?P<v>[vV])(?P<first>\d{1,6})(?P<rest>(?:\.\d{1,6})?)(?!\w)", _version),
    rule(r"(?<![\w-])\d{1,9}(?:-\d{1,9}){2,9}(?![\w-])", _code),
    rule(
        r"(?:(?P<whole>\d{1,9})\s)?(?<![/\d.])(?P<top>\d{1,6})/(?P<bottom>\d{1,6})(?![\w/])",
        _fraction,
    ),
    rule(r"(?<![\w.,])(?P<side>\d{1,5})(?:x(?=\d)|\sx(?=\s\d))", _by),
    rule(rf"(?<!\w)\#\s?(?P<number>{NUMBER})(?![\w])", _hash),
    rule(r"(?P<number>\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?:st|nd|rd|th|ST|ND|RD|TH)(?!\w)", _ordinal),
    rule(f"[{SUPERSCRIPTS}]{{1,4}}", _power),
)
PLAIN = rule(rf"{SIGN}(?:{NUMBER}|\.\d{{1,40}})", _plain)
