"""Rules for abbreviations: titles, streets, months, Latin phrases, and dotted initials."""

from __future__ import annotations

import re

from cantata_models.solo.text.tokens import (
    Expansion,
    Item,
    Pause,
    Strength,
    rule,
    say,
    sentence_end_follows,
)
from cantata_models.solo.text.wordlists import word_set
from cantata_models.solo.text.words import spell

# Stand before a name, so that the stop after them never ends a sentence.
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
# Said in full whether or not a sentence ends at their stop, which must be written.
_DOTTED = {
    "etc": "et cetera",
    "vs": "versus",
    "approx": "approximately",
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
    "est": "established",
    "Est": "established",
    "max": "maximum",
    "avg": "average",
    "govt": "government",
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
    "Ph.D": "P H D",
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
    "aka": "also known as",
    "eg": "for example",
    "ie": "that is",
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
    "Eq": "equation",
    "eq": "equation",
    "Art": "article",
    "Rm": "room",
    "Ext": "extension",
    "ext": "extension",
    "ca": "circa",
    "c": "circa",
}
_SAINT_OR_STREET = {"St": ("saint", "street"), "Dr": ("doctor", "drive")}
_OPENERS = word_set(
    "The A An It He She They We You I But And In On At This That These Those There If When While "
    "As So Then What Why How Who My Our His Her Their Its For After Before However"
)
_NEXT_WORD = re.compile(r"[\"')\]]*\s+[\"'(\[]*([A-Za-z]+)", re.ASCII)
_NAME_BEFORE = re.compile(r"(?:[A-Z][a-z]+|\d(?:st|nd|rd|th)?)\s$", re.ASCII)
_CAPITAL_AFTER = re.compile(r"\s+[A-Z]", re.ASCII)


def _names(words: dict[str, str]) -> str:
    return "|".join(re.escape(name) for name in sorted(words, key=len, reverse=True))


def _with_end(match: re.Match[str], items: list[Item]) -> list[Item]:
    """Adds the sentence's end where the abbreviation's stop is also the sentence's."""
    if match[0].endswith(".") and sentence_end_follows(match.string, match.end()):
        return [*items, Pause(Strength.SENTENCE)]
    return items


def _title(match: re.Match[str]) -> Expansion:
    return say(match, _TITLES[match["name"]])


def _dotted(match: re.Match[str]) -> Expansion:
    return _with_end(match, say(match, _DOTTED[match["name"]]))


def _undotted(match: re.Match[str]) -> Expansion:
    return say(match, _UNDOTTED[match["name"]])


def _numbered(match: re.Match[str]) -> Expansion:
    return say(match, _NUMBERED[match["name"]])


def _saint_or_street(match: re.Match[str]) -> Expansion:
    """ "St. Mark" and "Dr. Lee" against "Mark St." and "10 Lee Dr."."""
    before_name, after_name = _SAINT_OR_STREET[match["name"]]
    named = _NAME_BEFORE.search(match.string, max(0, match.start() - 24), match.start())
    leads = _CAPITAL_AFTER.match(match.string, match.end()) is not None
    if leads and (named is None or (match["name"] == "St" and _is_opening(match, named))):
        return say(match, before_name)
    if named is None:
        return say(match, before_name)
    return _with_end(match, say(match, after_name))


def _is_opening(match: re.Match[str], named: re.Match[str]) -> bool:
    """Tells whether the capitalised word before is only a sentence's first ("In St. Paul")."""
    return named[0].strip() in _OPENERS


def _initials(match: re.Match[str]) -> Expansion:
    """Reads "U.S." and "J. R. R.": letters by name."""
    letters = match[0].replace(" ", "")
    items: list[Item] = []
    for offset, char in enumerate(match[0]):
        if char.isalpha():
            items += spell(char, match.start() + offset)
    following = _NEXT_WORD.match(match.string, match.end())
    ends = following is None and not match.string[match.end() :].strip("\"')] \n")[:1].isalnum()
    if following is not None and letters.count(".") > 1:
        ends = following[1] in _OPENERS
    return [*items, Pause(Strength.SENTENCE)] if ends and match[0].endswith(".") else items


def _with(match: re.Match[str]) -> Expansion:
    return say(match, "without" if match[0] == "w/o" else "with")


_LEFT = r"(?<![\w.'@-])"

RULES = (
    rule(rf"{_LEFT}(?P<name>{_names(_TITLES)})\.(?=\s{{0,2}}[A-Z])", _title),
    rule(rf"{_LEFT}(?P<name>St|Dr)(?:\.|(?=\s[A-Z][a-z]))(?!\w)", _saint_or_street),
    rule(rf"{_LEFT}(?P<name>{_names(_NUMBERED)})\.\s?(?=\d)", _numbered),
    rule(rf"{_LEFT}(?P<name>{_names(_DOTTED)})\.(?!\w)", _dotted),
    rule(rf"{_LEFT}(?P<name>{_names(_UNDOTTED)})(?![\w.'-])", _undotted),
    rule(r"(?<![\w.'])(?:[A-Za-z]\.){2,8}(?!\w)", _initials),
    rule(r"(?<![\w.'])(?:[A-Za-z]\.){1,8}[A-Z](?![\w.'])", _initials),
    # A single initial before a name; not the pronoun at a sentence's end ("so do I. He ...").
    rule(r"(?<![\w.'])[A-HJ-Z]\.(?=\s?[A-Z][a-z.])", _initials),
    rule(r"(?<!\w)w/o?(?=\s)", _with),
)
