# ruff: noqa: RUF001 (a minus sign is meant)
"""Rules for code and formulas, as programmers and language models write them.

Brackets of calls and of indices, braces and LaTeX's commands are read for what they mean:
"f(x)" is "F of X", "arr[0]" is "arr zero", "\\\\frac{a}{b}" is "A over B".
"""

from __future__ import annotations

import re

from cantata_layers.english import numbers
from cantata_layers.english.latex import COMMANDS, FUNCTIONS, SILENT
from cantata_layers.english.tokens import Expansion, Item, rule, say, say_span, word_set
from cantata_layers.english.words import is_listed, spell

_COLLECTIONS = word_set(
    "data list array items values results args matrix vector row rows column columns table string "
    "numbers nums keys words input inputs output outputs points scores users names params options "
    "elements entries fields lines tokens queue stack buffer bytes chars argv str dict map tuple"
)
_PYTHON_CALLS = word_set(
    "print len range int str float list dict set tuple sum min max sorted open input type map "
    "filter zip any all round enumerate printf sizeof require append push pop split join main "
    "init update get run call test foo bar baz log sin cos tan sqrt exp ln abs det func fn"
)
_NAME_BEFORE = re.compile(r"(?<![A-Za-z'])(?P<name>[A-Za-z_](?:[A-Za-z0-9_.]{0,40}\w)?)$", re.ASCII)
_ARGUMENTS = re.compile(r"\((?:[^()\n]|\([^()\n]{0,40}\)){0,60}\)", re.ASCII)
_INDEX = re.compile(r"\[(?:-?\w{1,12}|['\"][^'\"\n\[\]]{1,30}['\"]|[\w+*:-]{1,16})\]", re.ASCII)
_OPERATES = re.compile(r"\s?(?:[=+*/<>.\[-]|\])", re.ASCII)


def _is_code_name(name: str) -> bool:
    """Whether a name is a program's: `my_list`, `os.path`, `camelCase`, `x`, `arr`."""
    last = name.rpartition(".")[2]
    return (
        "_" in name
        or len(last) == 1
        or re.search(r"[a-z][A-Z]|\d", last) is not None
        or last in _COLLECTIONS
        or not is_listed(last.lower())
    )


def _calls(text: str, place: int) -> bool:
    """Whether the bracket at `place` opens the arguments of a function."""
    named = _NAME_BEFORE.search(text[max(0, place - 42) : place])
    found = _ARGUMENTS.match(text, place)
    if named is None or found is None:
        return False
    last = named["name"].rpartition(".")[2]
    if last == "" or found[0] in ("(s)", "(es)", "(r)", "(c)", "(tm)"):
        return False
    return last in _PYTHON_CALLS or (_is_code_name(named["name"]) and last.lower() not in _COUNTED)


_COUNTED = word_set("section sec art article rule title clause paragraph para figure fig eq no")


def _open_call(match: re.Match[str]) -> Expansion:
    if not _calls(match.string, match.start()):
        return None
    empty = match.string[match.end() : match.end() + 1] == ")"
    return [] if empty else say(match, "of")


def _close_call(match: re.Match[str]) -> Expansion:
    place = _opening(match.string, match.start())
    return [] if place >= 0 and _calls(match.string, place) else None


def _opening(text: str, end: int) -> int:
    """Where the bracket is that the one at `end` closes; -1: too far, or nowhere."""
    depth = 0
    for place in range(end - 1, max(-1, end - 104), -1):
        depth += (text[place] == ")") - (text[place] == "(")
        if depth < 0:
            return place
    return -1


def _plural(match: re.Match[str]) -> Expansion:
    """Reads "item(s)" as "item"."""
    return []


def _indexes(text: str, place: int) -> bool:
    """Whether the bracket at `place` opens an index, not a note's number or a remark."""
    named = _NAME_BEFORE.search(text[max(0, place - 42) : place])
    found = _INDEX.match(text, place)
    if found is None:
        return False
    if named is None:
        # "a[i][j]", "f(x)[1]"
        opened = text.rfind("[", max(0, place - 20), place)
        return text[place - 1 : place] == "]" and opened >= 0 and _indexes(text, opened)
    inside = found[0][1:-1]
    if not inside.isdigit() or inside == "0":
        return True
    return _is_code_name(named["name"]) or _OPERATES.match(text, found.end()) is not None


def _open_index(match: re.Match[str]) -> Expansion:
    return [] if _indexes(match.string, match.start()) else None


def _close_index(match: re.Match[str]) -> Expansion:
    place = match.string.rfind("[", max(0, match.start() - 34), match.start())
    return [] if place >= 0 and _indexes(match.string, place) else None


def _power(match: re.Match[str]) -> Expansion:
    return say(match, "to the power of")


def _radix(match: re.Match[str]) -> Expansion:
    """Reads "0x1F" sign by sign."""
    return _signs(match[0], match.start())


def _color(match: re.Match[str]) -> Expansion:
    """Reads "#FF5733" sign by sign."""
    if not re.search(r"\d", match[0]) or not re.search(r"[A-Fa-f]", match[0]):
        return None
    return [
        *say_span(match.start(), match.start() + 1, "hash"),
        *_signs(match[0][1:], match.start() + 1),
    ]


def _signs(text: str, start: int) -> list[Item]:
    items: list[Item] = []
    for place, char in enumerate(text, start):
        items += (
            say_span(place, place + 1, numbers.digits(char))
            if char.isdigit()
            else spell(char, place)
        )
    return items


def _command(match: re.Match[str]) -> Expansion:
    name = match["name"]
    if name in SILENT:
        return []
    if name in COMMANDS:
        return say(match, COMMANDS[name])
    return None


def _fraction(match: re.Match[str]) -> Expansion:
    return say(match, numbers.fraction(int(match["top"]), int(match["bottom"])))


def _over(match: re.Match[str]) -> Expansion:
    """Reads what is between the parts of `\\\\frac{a}{b}`."""
    left = match.string[max(0, match.start() - 60) : match.start()]
    return say(match, "over") if re.search(r"\\[dt]?frac\{[^{}]{1,50}$", left) else None


def _brace(match: re.Match[str]) -> Expansion:
    """A brace of a formula is silent: those after a command, `^` or `_`, and their ends."""
    text, place = match.string, match.start()
    if match[0] == "}":
        place = text.rfind("{", max(0, place - 60), place)
    left = text[max(0, place - 20) : place] if place >= 0 else ""
    return [] if re.search(r"(?:[\^_}]|\\[A-Za-z]{1,16})$", left) else None


def _function(match: re.Match[str]) -> Expansion:
    return say(match, FUNCTIONS[match["name"]])


def _minus(match: re.Match[str]) -> Expansion:
    return say(match, "minus")


def _silent(match: re.Match[str]) -> Expansion:
    return []


def _dashes(match: re.Match[str]) -> Expansion:
    return say(match, ["dash"] * len(match[0]))


RULES = (
    rule(r"(?<!\w)0[xX][0-9A-Fa-f]{1,32}(?!\w)", _radix),
    rule(r"(?<!\w)0[bBoO][0-7]{1,64}(?!\w)", _radix),
    rule(r"(?<![\w&])\#[0-9A-Fa-f]{6}(?!\w)", _color),
    rule(r"\\[dt]?frac\{(?P<top>\d{1,4})\}\{(?P<bottom>\d{1,4})\}", _fraction),
    rule(r"\\(?P<name>[A-Za-z]{2,16})", _command),
    rule(r"\}\{", _over),
    rule(r"[{}]", _brace),
    rule(rf"(?<![\w\\])(?P<name>{'|'.join(FUNCTIONS)})(?=\()", _function),
    rule(r"(?<=[a-z])\((?:s|es)\)", _plural),
    rule(r"\(", _open_call),
    rule(r"\)", _close_call),
    rule(r"\[(?!\[)", _open_index),
    rule(r"\]", _close_index),
    rule(r"(?<=[\w)\]])\*\*(?=[-−]?[\w(])|(?<=[\w)\]]\s)\*\*(?=\s[-−]?[\w(])", _power),
    rule(r"(?<=\w)\^\{", _power),
    rule(r"(?:(?<=\^)|(?<=\^\{)|(?<=\()|(?<== ))[-−](?=[A-Za-z](?!\w))", _minus),
    rule(r"(?<=\w)::(?=\w)|(?<!\S)!(?=[A-Za-z_])", _silent),
    rule(r"(?<!\S)(?:--(?=[a-z][\w-]{1,30})|-(?=[a-zA-Z](?!\S)))", _dashes),
)
