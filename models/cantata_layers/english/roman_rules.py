# ruff: noqa: RUF001 (a dash between pages is meant)
"""Rules for Roman numerals: upper case where the context rules out letters, lower case rarely.

Lower case counts as a numeral only after words such as "part" and "page", and only with two letters
or more: "part iii" is certain, "part i like" is not.
"""

from __future__ import annotations

import re

from cantata_layers.english import numbers
from cantata_layers.english.tokens import Expansion, rule, say, word_set

_COUNTED_BY_ROMAN = word_set(
    "war chapter ch vol fig sec part volume book act scene section phase type class title article "
    "appendix stage level episode bowl fantasy grade figure table division category group mark "
    "schedule annex tier unit module symphony apollo gemini canto mk pt verse page pages pp"
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
_COUNTS_IN_LOWER_CASE = word_set(
    "part pt chapter ch act scene section sec volume vol book page pages pp p appendix article "
    "verse canto figure fig table step item"
)
_MORE_OFTEN_LETTERS = word_set(
    "IV VI XX XXX CC CV CI CL LI LX XC XL XI IX MI MM DC CD MD DI DX MC MIX"
)
"""Numerals that are more often an abbreviation or a name when they stand alone."""
_WORD_BEFORE = re.compile(r"([A-Za-z]{1,20})\.?\s{1,3}$", re.ASCII)
_RANGE_BEFORE = re.compile(r"\b(?:pages|pp\.?)\s[ivxlc]{1,8}\s?[-–]\s?$", re.ASCII)
_CENTURY = re.compile(r"\s+(?:century|centuries|dynasty|Olympiad)\b", re.ASCII)
_LIST_AFTER = re.compile(r"(?:,|\s?[-–]|\s(?:and|or|to))\s?I[IV]{1,2}\b", re.ASCII)
_NOUN = re.compile(r"\s[a-z]", re.ASCII)
_NUMERAL_I = re.compile(r"\s+of\b|\s*(?:[.,;:!?)]|$)", re.ASCII)


def _word_before(match: re.Match[str]) -> str:
    found = _WORD_BEFORE.search(match.string, max(0, match.start() - 24), match.start())
    return "" if found is None else found[1]


def _roman(match: re.Match[str]) -> Expansion:
    numeral = match["numeral"]
    value = numbers.roman(numeral)
    if value is None:
        return None
    if _CENTURY.match(match.string, match.end()):
        return say(match, numbers.ordinal(value)) if len(match[0]) > 1 else None
    word = _word_before(match)
    counted = word.lower() in _COUNTED_BY_ROMAN and (not word.islower() or len(numeral) > 1)
    # "Section C" is a letter; "Section V" is a numeral.
    counted = counted and (len(numeral) > 1 or value <= 10)
    if counted and value < 400:
        return say(match, _possessive(numbers.cardinal(value), match))
    # "Henry I think" is a pronoun; "Henry I of England" and "Henry I." are not.
    pronoun = numeral == "I" and not _NUMERAL_I.match(match.string, match.end())
    if word.lower() in _RULERS and not word.islower() and not pronoun:
        return say(match, ["the", *_possessive(numbers.ordinal(value), match)])
    if numeral == "I" and _LIST_AFTER.match(match.string, match.end()):
        return say(match, "one")
    if value >= 1000 and len(numeral) > 3:
        return say(match, numbers.year(value))
    named = word.istitle() and numeral == "IV" and not _NOUN.match(match.string, match.end())
    if len(numeral) > 1 and value < 40 and (named or numeral not in _MORE_OFTEN_LETTERS):
        return say(match, _possessive(numbers.cardinal(value), match))
    return None


def _possessive(words: list[str], match: re.Match[str]) -> list[str]:
    return [*words[:-1], words[-1] + (match["possessive"] or "")]


def _lower(match: re.Match[str]) -> Expansion:
    value = numbers.roman(match["numeral"].upper())
    counted = _word_before(match).lower() in _COUNTS_IN_LOWER_CASE
    left = match.string[max(0, match.start() - 24) : match.start()]
    in_range = _RANGE_BEFORE.search(left) is not None
    if value is None or value >= 400 or not (counted or in_range):
        return None
    return say(match, [*(["to"] if in_range else []), *numbers.cardinal(value)])


def _ordinal(match: re.Match[str]) -> Expansion:
    value = numbers.roman(match["numeral"])
    return None if value is None else say(match, numbers.ordinal(value))


def _in_brackets(match: re.Match[str]) -> Expansion:
    """Reads a list item's number, "(ii)"; the bracket of "f(x)" is no list's."""
    if match.string[max(0, match.start() - 2) : match.start() - 1].isalnum():
        return None
    value = numbers.roman(match["numeral"].upper())
    return None if value is None or value >= 40 else say(match, numbers.cardinal(value))


RULES = (
    rule(r"(?<!\w)(?P<numeral>[IVXLCDM]{1,12})(?P<possessive>'s)?(?![\w'])", _roman),
    rule(r"(?<!\w)(?P<numeral>[IVXLC]{1,8})(?:st|nd|rd|th)(?!\w)", _ordinal),
    rule(r"(?<=\()(?P<numeral>[ivx]{1,6})(?=\))", _in_brackets),
    rule(r"(?<!\w)(?P<numeral>[ivxlc]{2,8})(?![\w'])", _lower),
)
