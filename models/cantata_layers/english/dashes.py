# ruff: noqa: RUF001 (dashes, primes and signs that look alike are what this file is about)
"""Decides what a dash means: a range, a minus, a pause, or nothing.

Names and identifiers whose dash joins figures ("A320-200", "62704-1234") are read whole, in
`codes`. Here a dash between figures is a range unless it is an equation.
"""

from __future__ import annotations

import re
from enum import Enum


class Dash(Enum):
    """What a dash is read as."""

    RANGE = "to"
    MINUS = "minus"
    PAUSE = ","
    SILENT = ""


_WINDOW = 40
_MONTH_AFTER = re.compile(r"\s?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)", re.ASCII)
_DAY_BEFORE = re.compile(r"[a-z.]\s\d{1,2}(?:st|nd|rd|th)?\s?$", re.ASCII)
# A figure with what may follow it: a multiple, a unit, an ordinal's ending, a length's mark.
_FIGURE_BEFORE = re.compile(
    r"\d(?:[kmbx%s°\"']|°[cf]|st|nd|rd|th)?$|\d\s?[ap]\.?m\.?$", re.ASCII | re.IGNORECASE
)
_FIGURE_AFTER = re.compile(r"[$€£]?\.?\d", re.ASCII)
_MEASURED_BEFORE = re.compile(r"(?<![\w.,])\d[\d.,]{0,12}(?P<unit>[A-Za-zµΩ]{1,4})$", re.ASCII)
_MEASURED_AFTER = re.compile(r"\d[\d.,]{0,12}\s?(?P<unit>[A-Za-zµΩ]{1,4})(?!\w)", re.ASCII)
_NUMBERED_BEFORE = re.compile(r"(?<![\w-])(?P<series>[A-Z]{1,2})\d{1,3}$", re.ASCII)
_NUMBERED_AFTER = re.compile(r"(?P<series>[A-Z]{1,2})\d{1,3}(?![\w-])", re.ASCII)
_PLAIN_BEFORE = re.compile(r"(?<![\w.,:$€£-])(?P<number>\d{1,3})$", re.ASCII)
_PLAIN_AFTER = re.compile(r"(?P<number>\d{1,3})(?![\w.,:%°-]\d|[\w%°])", re.ASCII)
_EQUATION_AFTER = re.compile(r"\s?\d{1,9}\s?=", re.ASCII)
_ZONE_BEFORE = re.compile(r"\b(?:UTC|GMT)\s?$", re.ASCII)
_NOON_BEFORE = re.compile(r"\b(?:noon|midnight)$", re.ASCII | re.IGNORECASE)
_NUMBER_AND_SPACE = re.compile(r"(?<![\w.,^])(?P<number>\d[\d,]{0,12})\s$", re.ASCII)
_SPACE_AND_NUMBER = re.compile(
    r"\s(?P<number>\d[\d,]{0,12})(?P<noun>%|\s[a-z]{2,}|[a-z]{1,4}\b)?", re.ASCII
)
_COUNTED_BEFORE = re.compile(
    r"\b(?:pages?|pp|ages?|aged|chapters?|verses?|lines?|sections?|figures?|steps?|items?|weeks?"
    r"|days?|years?|rows?|levels?|rooms?|questions?|from|open|hours?)\.?:?\s[\d,]{1,12}\s$",
    re.ASCII | re.IGNORECASE,
)


def classify(text: str, start: int, end: int) -> Dash:
    """Says what the dash text[start:end] means, from at most 40 characters on each side."""
    dash = text[start:end]
    left, right = text[max(0, start - _WINDOW) : start], text[end : end + _WINDOW]
    if _ZONE_BEFORE.search(left) and right[:1].isdigit():
        return Dash.MINUS
    if _FIGURE_AFTER.match(right) and _FIGURE_BEFORE.search(left):
        return _classify_figures(left, right, dash)
    if _NOON_BEFORE.search(left) and right[:1].isdigit():
        return Dash.RANGE
    if _joins_equals(left, right, dash):
        return Dash.RANGE
    if _DAY_BEFORE.search(left) and _MONTH_AFTER.match(right):
        return Dash.RANGE
    if left[-1:] == " " and left[-2:-1].isdigit() and re.match(r"\s\d", right):
        return _classify_spaced(left, right, dash)
    if left[-1:].isalnum() and right[:1].isalnum() and dash in "-–":
        return Dash.SILENT
    spaced = (left[-1:] + right[:1]).isspace() or dash == "—" or len(dash) > 1
    return Dash.PAUSE if spaced else Dash.SILENT


def _classify_figures(left: str, right: str, dash: str) -> Dash:
    """Tells "5-3=2" and the even "2-2" and "50-50" from ranges and other scores."""
    if dash == "-" and _EQUATION_AFTER.match(right):
        return Dash.MINUS
    low, high = _PLAIN_BEFORE.search(left), _PLAIN_AFTER.match(right)
    even = low is not None and high is not None and low["number"] == high["number"]
    return Dash.SILENT if even else Dash.RANGE


def _joins_equals(left: str, right: str, dash: str) -> bool:
    """Whether the dash joins two of a kind: "A-Z", "Q1-Q3", "10GB-20GB"."""
    edges = left[-1:] + dash + right[:1]
    if edges == "A-Z" or re.fullmatch(r"[A-Z]–[A-Z]", edges):
        return True
    for before, after, kind in (
        (_NUMBERED_BEFORE, _NUMBERED_AFTER, "series"),
        (_MEASURED_BEFORE, _MEASURED_AFTER, "unit"),
    ):
        first, second = before.search(left), after.match(right)
        if first and second and first[kind] == second[kind]:
            return True
    return False


def _classify_spaced(left: str, right: str, dash: str) -> Dash:
    """A spaced hyphen is a minus, unless what follows is counted: "10 - 20 people"."""
    if dash != "-":
        return Dash.RANGE
    before, after = _NUMBER_AND_SPACE.search(left), _SPACE_AND_NUMBER.match(right)
    if before is None or after is None or _EQUATION_AFTER.match(right):
        return Dash.MINUS
    low, high = (int(found["number"].replace(",", "")) for found in (before, after))
    rises = low < high and (after["noun"] is not None or 1000 <= low < high <= 2100)
    return Dash.RANGE if rises or _COUNTED_BEFORE.search(left) else Dash.MINUS
