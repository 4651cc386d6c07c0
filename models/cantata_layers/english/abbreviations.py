"""Rules for abbreviations: titles, streets, months, Latin phrases, and dotted initials."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cantata_layers.english.tokens import (
    Expansion,
    Item,
    Pause,
    Strength,
    rule,
    say,
    say_span,
    sentence_end_follows,
    word_set,
)
from cantata_layers.english.words import spell

# Titles before a name: the full stop after them never ends a sentence.
_TITLES = {
    "Mr": "mister",
    "Mrs": "missus",
    "Ms": "miz",
    "Mx": "mix",
    "Messrs": "messers",
    "Prof": "professor",
    "Gov": "governor",
    "Sen": "senator",
    "Rep": "representative",
    "Gen": "general",
    "Col": "colonel",
    "Lt": "lieutenant",
    "Sgt": "sergeant",
    "Capt": "captain",
    "Cmdr": "commander",
    "Maj": "major",
    "Adm": "admiral",
    "Rev": "reverend",
    "Hon": "honorable",
    "Pres": "president",
    "Mt": "mount",
    "Ft": "fort",
}
# Read in full when written with a full stop, which may also end the sentence.
_DOTTED = {
    "etc": "et cetera",
    "Inc": "incorporated",
    "Ltd": "limited",
    "Co": "company",
    "Corp": "corporation",
    "Bros": "brothers",
    "Jr": "junior",
    "Sr": "senior",
    "Ave": "avenue",
    "Blvd": "boulevard",
    "Rd": "road",
    "Ln": "lane",
    "Hwy": "highway",
    "Pkwy": "parkway",
    "Apt": "apartment",
    "apt": "apartment",
    "Dept": "department",
    "dept": "department",
    "Univ": "university",
    "Assn": "association",
    "govt": "government",
    "Ph.D": "P H D",
    "Esq": "esquire",
}
# Read in full when written with a full stop, which never ends a sentence.
_INSIDE = {
    "Mr": "mister",
    "Mrs": "missus",
    "Ms": "miz",
    "Prof": "professor",
    "vs": "versus",
    "approx": "approximately",
    "est": "established",
    "Est": "established",
    "max": "maximum",
    "avg": "average",
    "Jan": "january",
    "Feb": "february",
    "Apr": "april",
    "Aug": "august",
    "Sept": "september",
    "Sep": "september",
    "Oct": "october",
    "Nov": "november",
    "Dec": "december",
    "Mon": "monday",
    "Tue": "tuesday",
    "Tues": "tuesday",
    "Wed": "wednesday",
    "Thu": "thursday",
    "Thurs": "thursday",
    "Fri": "friday",
    "e.g": "for example",
    "E.g": "for example",
    "i.e": "that is",
    "I.e": "that is",
    "et al": "et al",
    "cf": "compare",
    "Cf": "compare",
    "viz": "namely",
    "ibid": "ibid",
    "min": "minimum",
    "incl": "including",
    "excl": "excluding",
    "misc": "miscellaneous",
    "Tel": "telephone",
    "tel": "telephone",
    "a.k.a": "also known as",
}
_UNDOTTED = {
    "Mr": "mister",
    "Mrs": "missus",
    "Ms": "miz",
    "etc": "et cetera",
    "vs": "versus",
    "approx": "approximately",
    "Jr": "junior",
    "Blvd": "boulevard",
    "Ave": "avenue",
    "PhD": "P H D",
    "Ctrl": "control",
    "aka": "also known as",
    "Mk": "mark",
    "Rd": "road",
    "Pkwy": "parkway",
    "Hwy": "highway",
    "N/A": "N A",
    "n/a": "N A",
    "b/c": "because",
    "c/o": "care of",
    "A/C": "A C",
    "a/c": "A C",
    "Ltd": "limited",
    "eg": "for example",
    "ie": "that is",
    "TL;DR": "T L D R",
    "tl;dr": "T L D R",
    "Fwd": "forward",
    "qty": "quantity",
    "Qty": "quantity",
    "s/he": "she or he",
    "WWI": "world war one",
    "WW1": "world war one",
    "WWII": "world war two",
    "WW2": "world war two",
}
# Only before a number.
_NUMBERED = {
    "No": "number",
    "no": "number",
    "Nos": "numbers",
    "nos": "numbers",
    "Vol": "volume",
    "vol": "volume",
    "Fig": "figure",
    "fig": "figure",
    "Figs": "figures",
    "Ch": "chapter",
    "ch": "chapter",
    "Sec": "section",
    "sec": "section",
    "p": "page",
    "pp": "pages",
    "pg": "page",
    "Eq": "equation",
    "eq": "equation",
    "Art": "article",
    "Rm": "room",
    "rm": "room",
    "Ste": "suite",
    "Fl": "floor",
    "Bldg": "building",
    "Ext": "extension",
    "ext": "extension",
    "Pt": "part",
    "pt": "part",
    "ca": "circa",
    "c": "circa",
}
_SAINT_OR_STREET = {"St": ("saint", "street"), "Dr": ("doctor", "drive")}
_DIRECTIONS = {"N": "north", "S": "south", "E": "east", "W": "west"}
_OPENERS = word_set(
    "The A An It He She They We You I But And In On At This That These Those There If When While "
    "As So Then What Why How Who My Our His Her Their Its For After Before However "
    "Mr Mrs Ms"
)
_ANSWERS = re.compile(
    r"\b(?:sa(?:id|ys?|ying)|answer(?:s|ed)?|repl(?:y|ied)|means?t?|votes?d?|just|simply|definitely"
    r"|absolutely|probably|(?:tell|told|tells)\s\w{1,12}|again|oh|,)\s$",
    re.ASCII | re.IGNORECASE,
)
# "Is it? The answer is no. 5 people came."
_COUNTED_AFTER = re.compile(
    r"\s\d{1,6}\s(?:[a-z]{2,15}\s)?(?:people|men|women|children|others|[a-z]{2,20}s)\s"
    r"(?!(?:and|or|in|on|of|for)\b)[a-z]{2}",
    re.ASCII,
)
_NEXT_WORD = re.compile(r"[\"')\]]*\s+[\"'(\[]*([A-Za-z]+)", re.ASCII)


_NAME_BEFORE = re.compile(r"(?:[A-Z][a-z]+(?:'s)?|\d(?:st|nd|rd|th)?)\s$", re.ASCII)
_ADDRESS_BEFORE = re.compile(
    r"(?:\d\s(?:[NSEW]\.?\s)?(?:[A-Z][a-z]+\s){1,3}|\d(?:st|nd|rd|th)\s)$", re.ASCII
)


def _names(words: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(words, key=len, reverse=True))


def _with_end(match: re.Match[str], items: list[Item]) -> list[Item]:
    """Adds a sentence end if the abbreviation's full stop also ends the sentence.

    A capital letter alone is no proof ("Apple Inc. CEO"); a word that often opens sentences is.
    """
    following = _NEXT_WORD.match(match.string, match.end())
    if following is None:
        ends = sentence_end_follows(match.string, match.end())
    else:
        ends = following[1] in _OPENERS or (match[0] == "etc." and following[1][0].isupper())
    return [*items, Pause(Strength.SENTENCE)] if ends and match[0].endswith(".") else items


def _title(match: re.Match[str]) -> Expansion:
    return say(match, _TITLES[match["name"]])


def _dotted(match: re.Match[str]) -> Expansion:
    return _with_end(match, say(match, _DOTTED[match["name"]]))


def _inside(match: re.Match[str]) -> Expansion:
    return say(match, _INSIDE[match["name"]])


def _undotted(match: re.Match[str]) -> Expansion:
    return say(match, _UNDOTTED[match["name"]])


def _numbered(match: re.Match[str]) -> Expansion:
    return say(match, _NUMBERED[match["name"]])


def _number_or_no(match: re.Match[str]) -> Expansion:
    """Reads "no. 5" as "number five", unless the answer "no." ends a sentence before it."""
    left = match.string[max(0, match.start() - 30) : match.start()]
    if _ANSWERS.search(left) or _COUNTED_AFTER.match(match.string, match.end()):
        return [*say_span(match.start(), match.end() - 1, "no"), Pause(Strength.SENTENCE)]
    return say(match, "number")


def _place(match: re.Match[str]) -> Expansion:
    name = match["name"]
    return say(match, _NUMBERED.get(name) or _DOTTED[name])


def _direction(match: re.Match[str]) -> Expansion:
    return say(match, _DIRECTIONS[match["name"]])


def _saint_or_street(match: re.Match[str]) -> Expansion:
    """Distinguishes "St. Mark" and "ask Dr. Lee" from "Mark St." and "10 Lee Dr."."""
    before_name, after_name = _SAINT_OR_STREET[match["name"]]
    left = match.string[max(0, match.start() - 60) : match.start()]
    following = _NEXT_WORD.match(match.string, match.end())
    if following is not None and following[1][0].isupper() and following[1] not in _OPENERS:
        is_address = _ADDRESS_BEFORE.search(left) is not None
    else:
        named = _NAME_BEFORE.search(left)
        is_address = named is not None and named[0].strip() not in _OPENERS
    if is_address:
        return _with_end(match, say(match, after_name))
    return say(match, before_name)


def _initials(match: re.Match[str]) -> Expansion:
    """Reads "U.S." and "J. R. R." letter by letter."""
    items: list[Item] = []
    for offset, char in enumerate(match[0]):
        if char.isalpha():
            items += spell(char, match.start() + offset)
    return _with_end(match, items)


def _edition(match: re.Match[str]) -> Expansion:
    return say(match, "edition")


def _century(match: re.Match[str]) -> Expansion:
    return _with_end(match, say(match, "century"))


def _minus(match: re.Match[str]) -> Expansion:
    """Reads the sign of a grade, "a B- average"."""
    return say(match, "minus")


def _with(match: re.Match[str]) -> Expansion:
    return say(match, {"w/o": "without", "w/in": "within"}.get(match[0], "with"))


DOTTED_NAMES = _names({**_TITLES, **_DOTTED, **_INSIDE, **_NUMBERED, **_SAINT_OR_STREET})
"""A pattern of what may be read otherwise with a full stop."""
UNDOTTED_NAMES = _names({**_UNDOTTED, **_SAINT_OR_STREET})
"""A pattern of what is read otherwise without one, too."""
_LEFT = r"(?<![\w.'@])"

RULES = (
    rule(rf"{_LEFT}(?P<name>{_names(_TITLES)})\.(?=\s{{0,2}}[A-Z])", _title),
    rule(
        r"(?<![\w.'])(?P<name>[NSEW])\.?(?=\s(?:\d{1,3}(?:st|nd|rd|th)|[A-Z][a-z]{1,20})\s"
        r"(?:St|Street|Ave|Avenue|Blvd|Boulevard|Rd|Road|Dr|Drive|Ln|Lane)\b)",
        _direction,
    ),
    rule(rf"{_LEFT}(?P<name>St|Dr)(?:\.|(?![\w'-]))(?!\w)", _saint_or_street),
    rule(rf"{_LEFT}no\.(?=\s\d)", _number_or_no),
    rule(rf"{_LEFT}(?P<name>{_names(_NUMBERED)})\.\s?(?=\(?\d)", _numbered),
    rule(
        rf"{_LEFT}(?P<name>[Cc]h|[Vv]ol|[Ff]ig|[Ss]ec|[Pp]t|pp?)\.\s(?=(?:[IVXLC]{{1,7}}|[ivxlc]{{2,7}})(?!\w))",
        _numbered,
    ),
    rule(rf"{_LEFT}(?P<name>Apt|Ste|Bldg|Rm)(?=\s\#?\d)", _place),
    rule(r"(?<=\d(?:st|nd|rd|th) )ed\.(?!\w)", _edition),
    rule(rf"{_LEFT}(?P<name>{_names(_DOTTED)})\.(?!\w)", _dotted),
    rule(rf"{_LEFT}(?P<name>{_names(_INSIDE)})\.(?!\w)", _inside),
    rule(rf"{_LEFT}(?P<name>{_names(_UNDOTTED)})(?![\w.'-])", _undotted),
    rule(r"(?<![\w.'])(?:[A-Za-z]\.){2,8}(?!\w)", _initials),
    rule(r"(?<![\w.'])(?:[A-Za-z]\.){1,8}[A-Z](?![\w.'])", _initials),
    # A single initial before a name, but not the pronoun that ends a sentence ("so do I. He ...").
    rule(r"(?<![\w.'])[A-HJ-Z]\.(?=\s?[A-Z][a-z.])", _initials),
    rule(r"(?<!\w)w/(?:o\b|in\b|(?=\s|$))", _with),
    rule(r"(?<=\d(?:st|nd|rd|th) )c\.(?!\w)", _century),
    rule(r"(?<=\b[A-DF])[-−](?=\s(?:average|grades?|student)\b|[,.;!?)]|$)", _minus),  # noqa: RUF001
)
