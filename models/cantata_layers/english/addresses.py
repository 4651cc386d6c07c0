"""Rules for URLs, e-mail addresses, file names, IP addresses and telephone numbers."""

from __future__ import annotations

import re
from collections.abc import Callable

from cantata_layers.english import numbers
from cantata_layers.english.tokens import (
    Expansion,
    Item,
    Pause,
    Strength,
    rule,
    say_span,
    word_set,
)
from cantata_layers.english.words import spell, word_items

_TOP_LEVEL = (
    "com|org|net|edu|gov|mil|io|ai|dev|app|co|uk|us|de|fr|info|biz|me|tv|ly|eu|ca|au|jp|ch|at|nl|se"
    "|gg|xyz|tech|cloud|page|site|online|blog|ninja|fm|in|it|es|be|no"
)
_MARKS = {
    ".": "dot",
    "/": "slash",
    "@": "at",
    "-": "dash",
    "_": "underscore",
    "?": "question mark",
    "=": "equals",
    "&": "and",
    "#": "hash",
    "%": "percent",
    "~": "tilde",
    ":": "colon",
    "+": "plus",
    "\\": "backslash",
}
_SPELLED = word_set("www http https ftp io uk us de tv fm gg js ts md txt csv gz rs cpp")
_PART = re.compile(r"[A-Za-z]+|\d+|[^A-Za-z\d]", re.ASCII)
_TELEPHONE_BEFORE = re.compile(
    r"\b(?:call|dial|phone|tel|fax|number|mobile|cell|text|at)(?:\sis)?[.:]?\s$",
    re.ASCII | re.IGNORECASE,
)
_COUNTED_AFTER = re.compile(r"\s?(?:%|[km]?[gmlLWV]\b|\s?[a-z]{2,20}s\b)", re.ASCII)
_PATH = r"(?:[/?#][\w\-./?%&=+~#:@,;!$*]{0,400}[\w/=&%+#~-])?"
_HOST = r"[A-Za-z0-9](?:[\w-]{0,62}\w)?(?:\.\w(?:[\w-]{0,62}\w)?){0,8}"


def address_items(text: str, offset: int) -> list[Item]:
    """Reads an address part by part. Each part keeps its own span."""
    items: list[Item] = []
    for part in _PART.finditer(text):
        start, end = offset + part.start(), offset + part.end()
        if part[0].isdigit():
            items += say_span(start, end, numbers.grouped(part[0]))
        elif part[0].isalpha():
            spelled = part[0].lower() in _SPELLED or len(part[0]) == 1
            items += spell(part[0], start) if spelled else word_items(part[0], start)
        else:
            items += say_span(start, end, _MARKS.get(part[0], ""))
    return items


def _address(match: re.Match[str]) -> Expansion:
    return address_items(match["spoken"], match.start("spoken"))


def _skip(match: re.Match[str]) -> Expansion:
    return []


def _digit_groups(match: re.Match[str]) -> Expansion:
    """Reads a long number digit by digit, with a pause between groups."""
    return _read_groups(match, numbers.digits)


def _telephone(match: re.Match[str]) -> Expansion:
    """The same, as the British dial it: "oh two oh, double seven"."""
    return _read_groups(match, numbers.telephone)


def _read_groups(match: re.Match[str], read: Callable[[str], list[str]]) -> Expansion:
    items: list[Item] = []
    if match[0].startswith("+"):
        items += say_span(match.start(), match.start() + 1, "plus")
    for group in re.finditer(r"\d+", match[0]):
        start = match.start() + group.start()
        if group.start() > 1:
            items.append(Pause(Strength.CLAUSE))
        items += say_span(start, start + len(group[0]), read(group[0]))
    return items


def _local_number(match: re.Match[str]) -> Expansion:
    """Reads "555-0199", but not the range in "500-1000 users" and "100-1500"."""
    text, (first, second) = match.string, match[0].split("-")
    if _TELEPHONE_BEFORE.search(text, max(0, match.start() - 20), match.start()):
        return _telephone(match)
    rises = int(first) < int(second)
    if first[0] in "01" or _COUNTED_AFTER.match(text, match.end()):
        return None if rises else _telephone(match)
    return None if rises and first[-1] == "0" == second[-1] == second[-2] else _telephone(match)


def _vanity(match: re.Match[str]) -> Expansion:
    """Reads "1-800-FLOWERS"."""
    items: list[Item] = []
    for group in re.finditer(r"\d+", match["prefix"]):
        start = match.start() + group.start()
        items += say_span(start, start + len(group[0]), numbers.digits(group[0]))
        items.append(Pause(Strength.CLAUSE))
    return items + word_items(match["name"].lower(), match.start("name"))


def _ip_address(match: re.Match[str]) -> Expansion:
    items: list[Item] = []
    for part in re.finditer(r"\d+|\.", match["host"]):
        start, end = match.start() + part.start(), match.start() + part.end()
        items += say_span(start, end, "dot" if part[0] == "." else numbers.number(part[0]))
    return items


def _ip_and_port(match: re.Match[str]) -> Expansion:
    """Reads "10.0.0.1:8080"."""
    end = match.end("host")
    return [*(_ip_address(match) or ()), *address_items(match.string[end : match.end()], end)]


RULES = (
    # A Markdown link: the text was already read, so skip the target.
    rule(r"\]\([^()\s]{1,400}\)", _skip),
    # The scheme is not spoken: it is no use to the listener.
    rule(r"(?<!\w)mailto:(?=\w)", _skip),
    rule(rf"(?<!\w)(?:https?|ftp|wss?)://(?P<spoken>{_HOST}(?::\d{{1,5}})?{_PATH})", _address),
    rule(r"(?<![\w.])(?P<spoken>[\w.+-]{1,64}@\w(?:[\w-]{0,62}\w)?(?:\.\w{2,24}){1,4})", _address),
    rule(rf"(?<![\w.@])(?P<spoken>www\.{_HOST}{_PATH})", _address),
    rule(
        rf"(?<![\w.@])(?P<spoken>(?:[A-Za-z0-9](?:[A-Za-z0-9-]{{0,62}}[A-Za-z0-9])?\.){{1,4}}"
        rf"(?:{_TOP_LEVEL})(?::\d{{1,5}})?(?!\w|\.\w){_PATH})",
        _address,
    ),
    rule(rf"(?<![\w.@])(?P<spoken>localhost(?::\d{{1,5}})?{_PATH})(?!\w)", _address),
    rule(
        r"(?<![\w.])(?P<spoken>[A-Za-z][\w-]{0,40}(?:\.\w{1,20}){0,3}\.(?:js|ts|py|rs|go|cpp|txt|md"
        r"|csv|json|yaml|yml|xml|html|css|pdf|png|jpe?g|gif|svg|wav|mp3|mp4|zip|gz|tar|exe|sh|toml"
        r"|ini|log|docx?|xlsx?|pptx?))(?!\w)",
        _address,
    ),
    # Paths: "/usr/local/bin", "~/.bashrc", "./run.sh", "C:\\Users".
    rule(r"(?<!\S)(?P<spoken>(?:~|\.{1,2})?(?:/[\w.-]{0,60}\w){1,20}/?)(?!\w)", _address),
    rule(r"(?<!\w)(?P<spoken>[A-Z]:(?:\\[\w.-]{0,60}\w){1,20})(?!\w)", _address),
    rule(r"(?<![\w@])(?P<spoken>@\w{1,40})(?!\w)", _address),
    rule(
        rf"(?<![\w.])(?P<spoken>(?P<host>\d{{1,3}}(?:\.\d{{1,3}}){{3}}):\d{{1,5}}{_PATH})(?!\w|[.:]\d)",
        _ip_and_port,
    ),
    rule(r"(?<![\w.])(?P<host>\d{1,3}(?:\.\d{1,3}){3})(?!\w|\.\d)", _ip_address),
    rule(r"(?<![\w-])(?:\+?1[-. ])?\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4}(?![\w-])", _telephone),
    rule(r"(?<![\w-])\d{3}-\d{4}(?![\w-])", _local_number),
    rule(r"(?<!\w)\+\d{1,3}(?:[ -]?\(\d{1,5}\)|[ -]\d{1,8}|(?<=\))\d{1,8}){2,6}(?!\w)", _telephone),
    rule(r"(?<![\w-])(?P<prefix>(?:1-)?[89]\d\d)-(?P<name>[A-Z]{3,12})(?![\w-])", _vanity),
    rule(r"(?<![\w-])\(?0\d{2,4}\)?[ -]\d{3,4}[ -]\d{3,4}(?![\w-])", _telephone),
    # "01632 960055", "07700 900123".
    rule(r"(?<![\w-])\(?0[1-9]\d{3}\)?[ -]\d{5,6}(?![\w-])", _telephone),
    rule(r"(?<!\w)\+\d{8,15}(?!\w)", _telephone),
    rule(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])", _digit_groups),
    rule(r"(?<![\w-])\d{4}(?:[ -]\d{4}){3}(?![\w-])", _digit_groups),
)
