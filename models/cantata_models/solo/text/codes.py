"""Rules for codes and product names: digits one by one, or in the groups that people say.

A hyphen between figures means "to" only in a range. In the name of a product ("A320-200") and in
an identifier ("INV-2024-001") it separates groups.
"""

from __future__ import annotations

import re
from itertools import pairwise

from cantata_models.solo.text import numbers
from cantata_models.solo.text.tokens import Expansion, Item, Pause, Strength, rule, say_span
from cantata_models.solo.text.wordlists import word_set
from cantata_models.solo.text.words import spell, word_items

_SECRET = (
    r"(?:code|pin|passcode|password|otp|cvv|cvc|token|key|zip|postcode|passport|routing|sort code"
    r"|tracking|confirmation|verification|booking|reference|serial|imei|iban|ssn|isbn)"
)
_NUMBERED_THING = (
    r"(?:account|acct|order|invoice|ticket|case|claim|member|membership|policy|licen[sc]e|customer"
    r"|reservation|receipt|permit|card|phone|contract|docket|transaction|model|part|item|employee"
    r"|student|patient|sku|id|ref|po|rma)"
)
_LINK = (
    r"(?:\s?(?:number|numbers|no\.?|nr\.?|code|codes|id|is|was|are|and|or|will be|to|[:=#-])){0,4}"
)
_AFTER_SECRET = re.compile(rf"\b{_SECRET}s?{_LINK}\s?[\"'(]?$", re.IGNORECASE | re.ASCII)
_AFTER_NUMBERED = re.compile(
    rf"\b{_NUMBERED_THING}s?\s?(?:number|no\.?|nr\.?|id|:|\#)\s?(?:is|was|:|\#)?\s?$",
    re.IGNORECASE | re.ASCII,
)
_NAMED_BEFORE = re.compile(rf"\b{_NUMBERED_THING}\s$", re.IGNORECASE | re.ASCII)
_FAULT_BEFORE = re.compile(r"\b(?:error|status|exit|http)\scode:?\s$", re.IGNORECASE | re.ASCII)
_LONG_CODE = 5
_WINDOW = 48

_MAKER_BEFORE = re.compile(
    r"\b(?:boeing|airbus|douglas|lockheed|embraer|bombardier|cessna|antonov|tupolev|iso|iec|ieee"
    r"|din|ansi|astm|nist|fips|rfc|mil|jis|en|geforce|rtx|gtx|radeon|ryzen|core|xeon|xerox|part"
    r"|model|type|series|class|sku|catalog|serial|colt|porsche|ferrari|leica|nikon)"
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


def is_code(match: re.Match[str]) -> bool:
    """Whether the words before a number make it a code: "code is", "PIN:", "account number"."""
    before = match.string[max(0, match.start() - _WINDOW) : match.start()]
    digits = sum(char.isdigit() for char in match[0])
    if _FAULT_BEFORE.search(before) and digits == 3:
        return False
    if digits >= 3 and (_AFTER_SECRET.search(before) or _AFTER_NUMBERED.search(before)):
        return True
    return digits >= _LONG_CODE and _NAMED_BEFORE.search(before) is not None


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
    before = match.string[max(0, match.start() - _WINDOW) : match.start()]
    if not any(_has_digit(left) and right[0].isdigit() for left, right in pairwise(parts)):
        return None
    numeric = [part for part in parts if part.isdigit()]
    serial = (
        match["hash"] != ""
        or is_code(match)
        or any(part[0] == "0" and len(part) > 2 for part in numeric)
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
            said = _group(part[0]) if part[0].isdigit() else _version(part[0])
            items += say_span(place, end, said)
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
    named = _NAMED_BEFORE.search(match.string[max(0, match.start() - _WINDOW) : match.start()])
    long = number.isdigit() and len(number) >= (_LONG_CODE - 1 if named else _LONG_CODE)
    said = numbers.digits(number) if long else numbers.number(number)
    return say_span(match.start(), match.end(), ["number", *said])


def _plain_code(match: re.Match[str]) -> Expansion:
    return group_items(match[0], match.start()) if is_code(match) else None


RULES = (
    rule(
        r"(?<![\w.$€£/-])(?P<hash>\#?)(?P<name>[A-Za-z0-9][A-Za-z0-9.]{0,20}"
        r"(?:-[A-Za-z0-9](?:[A-Za-z0-9.]{0,20}[A-Za-z0-9])?){1,6})(?![\w/%°-]|[.,:]\d)",
        _hyphened,
    ),
    rule(r"(?<![\w.,-])\d{3,19}(?:[ -]\d{2,6}){0,4}(?![\w-]|[.,:/]\d)", _plain_code),
    rule(r"(?<![\w.,-])[A-Z0-9]{4,16}(?:-[A-Z0-9]{2,12}){0,3}(?![\w-])", _spelled_code),
    rule(r"(?<!\w)\#\s?(?P<number>\d{1,3}(?:,\d{3}){1,4}|\d{1,20})(?![\w-]|[.,]\d)", _hash),
)
