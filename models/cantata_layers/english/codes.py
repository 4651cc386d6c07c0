"""Rules for codes and product names: digits one by one, or in the groups that people say.

A hyphen between figures means "to" only in a range. In the name of a product ("A320-200") and in
an identifier ("INV-2024-001") it separates groups.
"""

from __future__ import annotations

import re
from itertools import pairwise

from cantata_layers.english import numbers
from cantata_layers.english.code_cues import LONG_CODE, NAMED_BEFORE, WINDOW, is_code
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

_MAKER_BEFORE = re.compile(
    r"\b(?:boeing|airbus|douglas|lockheed|embraer|bombardier|cessna|antonov|tupolev|iso|iec|ieee"
    r"|din|ansi|astm|nist|fips|rfc|mil|jis|en|geforce|rtx|gtx|radeon|ryzen|core|xeon|xerox|sp|bs|part"
    r"|model|type|series|class|sku|catalog|serial|colt|porsche|ferrari|leica|nikon"
    r"|llama|qwen|gemma|phi|mistral|mixtral|deepseek|gpt|claude|gemini|falcon|granite|olmo|iphone|ipad|pixel|galaxy|epyc)"
    r"(?:\s(?:number|no\.?))?\s?\#?$",
    re.IGNORECASE | re.ASCII,
)
_SCORE_BEFORE = re.compile(
    r"\b(?:won|win|wins|winning|lost|lose|loss|beat|beats|beating|scores?|scored|defeat(?:ed)?"
    r"|leads?|led|leading|ahead|victory|tied?|trail(?:s|ed|ing)?|votes?|voted|passed|ruled|odds"
    r"|pages?|pp|between|from)\b[^.!?]{0,30}$",
    re.IGNORECASE | re.ASCII,
)
_QUARTERS = word_set("Q1 Q2 Q3 Q4 H1 H2")
_PART = re.compile(r"[A-Za-z]+|\d+(?:\.\d+)*", re.ASCII)


def group_items(text: str, start: int) -> list[Item]:
    """Reads a code's digits one by one, with a pause between its groups."""
    items: list[Item] = []
    for part in re.finditer(r"\d+|[A-Za-z]+", text):
        place = start + part.start()
        if part[0].isalpha():
            items += spell(part[0], place) if len(part[0]) <= 3 else word_items(part[0], place)
            continue
        if items and text[part.start() - 1] in "- ":
            items.append(Pause(Strength.CLAUSE))
        items += say_span(place, place + len(part[0]), numbers.digits(part[0]))
    return items


def _hyphened(match: re.Match[str]) -> Expansion:
    """Reads "737-800", "Llama-3.1-8B" and "#1234-5678"; declines ranges, scores and words."""
    parts = match["name"].split("-")
    before = match.string[max(0, match.start() - WINDOW) : match.start()]
    if not any(_has_digit(left) and right[0].isdigit() for left, right in pairwise(parts)):
        return None
    numeric = [part for part in parts if part.isdigit()]
    serial = (
        match["hash"] != ""
        or is_code(match)
        or any(part[0] == "0" and len(part) > 2 for part in numeric)
        or (len(numeric) > 1 and parts[0].isupper() and any(len(part) > 4 for part in numeric))
        or [len(part) for part in parts if part.isdigit()]
        == [5, 4]
        == [len(part) for part in parts]
    )
    if not (serial or _is_name(match, parts, before)):
        return None
    items: list[Item] = []
    if match["hash"]:
        items += say_span(match.start(), match.start() + 1, "number")
    if serial:
        return items + group_items(match["name"], match.start("name"))
    return items + _name_items(match["name"], match.start("name"))


def _has_digit(part: str) -> bool:
    return any(char.isdigit() for char in part)


def _is_name(match: re.Match[str], parts: list[str], before: str) -> bool:
    if _MAKER_BEFORE.search(before):
        return True
    first = parts[0]
    if first[0].isalpha():
        return first not in _QUARTERS
    if len(parts) != 2 or not (first.isdigit() and parts[1].isdigit()):
        return False
    if re.compile(r"\s?=").match(match.string, match.end()) or _SCORE_BEFORE.search(before):
        return False
    # A range goes up; "1914-18" and "245-48" leave out what they share.
    return len(first) > 2 and len(parts[1]) != 2 and int(parts[1]) < int(first)


def _name_items(text: str, start: int) -> list[Item]:
    """Reads a product's name: "seven thirty seven", "three point one", "eight B"."""
    items: list[Item] = []
    for part in _PART.finditer(text):
        place = start + part.start()
        end = place + len(part[0])
        if part[0][0].isdigit():
            words = _group(part[0]) if part[0].isdigit() else _version(part[0])
            items += say_span(place, end, words)
        elif part[0] in ("v", "V") and text[part.end() : part.end() + 1].isdigit():
            items += say_span(place, end, "version")
        elif len(part[0]) <= 2:
            items += spell(part[0], place)
        else:
            items += word_items(part[0], place)
    return items


def _group(text: str) -> list[str]:
    if len(text) == 5 and text[0] != "0" and text[2] != "0":
        # "twelve seven hundred"
        return [*numbers.grouped(text[:2]), *numbers.grouped(text[2:])]
    return numbers.grouped(text)


def _version(text: str) -> list[str]:
    first, *rest = text.split(".")
    return [*numbers.number(first), *(word for part in rest for word in ["point", *_minor(part)])]


def _minor(part: str) -> list[str]:
    return numbers.digits(part) if part[0] == "0" else numbers.number(part)


def _spelled_code(match: re.Match[str]) -> Expansion:
    """Reads "AB12CD" after "code" or "PIN" sign by sign."""
    if not is_code(match) or match[0].isdigit() or match[0].isalpha():
        return None
    return group_items(match[0], match.start())


def _hash(match: re.Match[str]) -> Expansion:
    number = match["number"]
    named = NAMED_BEFORE.search(match.string[max(0, match.start() - WINDOW) : match.start()])
    long = number.isdigit() and len(number) >= (LONG_CODE - 1 if named else LONG_CODE)
    words = numbers.digits(number) if long else numbers.number(number)
    return say_span(match.start(), match.end(), ["number", *words])


def _standard(match: re.Match[str]) -> Expansion:
    """Reads "ISO 9001:2015", whose colon is neither a time nor a ratio."""
    before = match.string[max(0, match.start() - WINDOW) : match.start()]
    if _MAKER_BEFORE.search(before) is None:
        return None
    name = match["name"]
    if name.isdigit() and "00" in name[1:-1]:
        # "nine thousand one", "twenty seven thousand one"
        items = say_span(match.start(), match.end("name"), numbers.cardinal(int(name)))
    else:
        items = _name_items(name, match.start())
    return [*items, *say_span(match.start("year"), match.end(), numbers.year(int(match["year"])))]


def _airliner(match: re.Match[str]) -> Expansion:
    """Reads "737-800" without its maker's name; declines "pages 737-800"."""
    before = match.string[max(0, match.start() - WINDOW) : match.start()]
    if _SCORE_BEFORE.search(before):
        return None
    return _name_items(match[0], match.start())


def _groups(match: re.Match[str]) -> Expansion:
    return group_items(match[0], match.start())


def _signs(match: re.Match[str]) -> Expansion:
    """Reads an account's number with letters, "DE89 3704 0044", sign by sign."""
    items: list[Item] = []
    for part in re.finditer(r"[A-Z]|\d+", match[0]):
        place = match.start() + part.start()
        if items and match[0][part.start() - 1] == " ":
            items.append(Pause(Strength.CLAUSE))
        if part[0].isalpha():
            items += spell(part[0], place)
        else:
            items += say_span(place, place + len(part[0]), numbers.digits(part[0]))
    return items


def _band(match: re.Match[str]) -> Expansion:
    """Reads "H.264" and "802.11ax"."""
    items: list[Item] = []
    for part in re.finditer(r"[A-Za-z]+|\d+|\.", match[0]):
        place = match.start() + part.start()
        if part[0].isalpha():
            items += spell(part[0], place)
        elif part[0].isdigit():
            items += say_span(place, place + len(part[0]), numbers.grouped(part[0]))
        elif part.start() > 1:
            items += say_span(place, place + 1, "dot")
    return items


def _plural_model(match: re.Match[str]) -> Expansion:
    """Reads the figure of "F-16s"."""
    return say_span(match.start(), match.end(), numbers.plural(numbers.grouped(match["number"])))


def _free_call(match: re.Match[str]) -> Expansion:
    """Reads the figures of "1-800-FLOWERS"."""
    return say_span(match.start(), match.end() - 1, ["one", *numbers.grouped(match["number"])])


def _section(match: re.Match[str]) -> Expansion:
    """Reads "Section 8-101", which is no range: its second figure is longer than the first."""
    if len(match["number"]) <= len(match["part"]):
        return None
    words = [*numbers.grouped(match["part"]), *numbers.grouped(match["number"])]
    return say_span(match.start(), match.end(), words)


def _plain_code(match: re.Match[str]) -> Expansion:
    return group_items(match[0], match.start()) if is_code(match) else None


COLONS = (
    rule(r"(?<![\w.])(?P<name>\d{3,5}(?:-\d{1,3})?):(?P<year>(?:19|20)\d\d)(?![\w:])", _standard),
    rule(r"(?<![\w:.])\d:\d\d-(?:cv|cr|mc|md|mj|bk|ap)-\d{3,5}(?!\w)", _groups),
)
"""Codes whose colon must not be taken for that of a time or of a verse."""

RULES = (
    rule(
        r"(?<![\w.,$€£-])7[0-8]7-(?:10|[1-9]00|[1-9])(?:ER|LR|SP|F|X)?(?![\w-]|[.,:]\d)", _airliner
    ),
    rule(r"(?<![\w.,$€£-])7[0-8]7(?=\sMAX\b)", _airliner),
    rule(r"(?<!\w)[A-Z]{2}\d\d(?:\s[A-Z0-9]{4}){2,7}(?:\s[A-Z0-9]{1,3})?(?!\w)", _signs),
    rule(r"(?<![\w.])(?:H\.26\d|802\.\d{1,2}[a-z]{0,2})(?![\w.])", _band),
    rule(r"(?<![\w-])\d\d-\d{7}(?![\w-])", _groups),
    rule(r"(?<=[A-Z]-)(?P<number>\d{1,3})s(?!\w)", _plural_model),
    rule(r"(?<![\w-])1-(?P<number>8(?:00|33|44|55|66|77|88))-(?=[A-Z])", _free_call),
    rule(
        r"(?:(?<=[Ss]ection )|(?<=[Aa]rticle )|(?<=[Rr]ule )|(?<=§ )|(?<=§))"
        r"(?P<part>\d{1,3})-(?P<number>\d{3,4})(?![\w-])",
        _section,
    ),
    rule(r"(?<![\w-])[A-Z]{1,6}-\d{5,12}(?![\w-]|[.,]\d)", _groups),
    rule(
        r"(?<![\w.$€£/-])(?P<hash>\#?)(?P<name>[A-Za-z0-9][A-Za-z0-9.]{0,20}"
        r"(?:-[A-Za-z0-9](?:[A-Za-z0-9.]{0,20}[A-Za-z0-9])?){1,6})(?![\w/%°-]|[.,:]\d)",
        _hyphened,
    ),
    rule(r"(?<![\w.,-])\d{3,19}(?:[ -]\d{2,6}){0,4}(?![\w-]|[.,:/]\d)", _plain_code),
    rule(r"(?<![\w.,-])[A-Z0-9]{4,16}(?:-[A-Z0-9]{2,12}){0,3}(?![\w-])", _spelled_code),
    rule(r"(?<!\w)\#\s?(?P<number>\d{1,3}(?:,\d{3}){1,4}|\d{1,20})(?![\w-]|[.,]\d)", _hash),
)
