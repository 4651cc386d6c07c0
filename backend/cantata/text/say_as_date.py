"""Dates of SSML's `<say-as>`: figures and English months as day, month and year."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_ORDERS = ("mdy", "dmy", "ymd", "ydm", "md", "dm", "ym", "my", "y", "m", "d")
_DATE_MARKS = re.compile(r"[\s./,\-\u2010-\u2013\u2212]*")
"""All that may stand between and around the parts of a date."""
_PARTS = re.compile(r"\b(?:the|of)\b|(?P<figures>\d+)(?:st|nd|rd|th)?|(?P<month>[A-Za-z]{3,9})")
_FIRST_OF_1900S = 50
"""A year of two figures from here on is one of the last century."""


@dataclass(frozen=True, slots=True)
class WrittenDate:
    """A date, of which parts may be missing."""

    year: int | None
    month: str | None
    """Its English name."""
    day: int | None


def read_date(text: str, order: str, *, day_first: bool) -> WrittenDate | None:
    """The date that a text is; None if it is none.

    Args:
        text: figures with marks between them, or with a month's name or its first three letters.
        order: of the parts, such as `mdy` or `yyyymmdd`; empty or unknown: as the text looks. A
            part that the text lacks is left out: `mdy` of "12/25" is `md`.
        day_first: whether "4/5" is a day of May; a number above 12 is a day in either case.
    """
    parts = list(_PARTS.finditer(text))
    if not parts or not _DATE_MARKS.fullmatch(_PARTS.sub("", text)):
        return None
    figures = [part["figures"] for part in parts if part["figures"]]
    names = [part["month"] for part in parts if part["month"]]
    if names:
        return _read_named(figures, names)
    wanted = "".join(dict.fromkeys(re.sub("[^dmy]", "", order)))
    return _read_figures(figures, wanted if wanted in _ORDERS else "", day_first=day_first)


def _read_named(figures: list[str], names: list[str]) -> WrittenDate | None:
    """With a month in letters: "4 May", "May 4, 2026", "2026 May 4", "May 2026"."""
    name = "sep" if names[0].lower() == "sept" else names[0].lower()
    month = next((one for one in _MONTHS if name in (one.lower(), one[:3].lower())), None)
    if len(names) > 1 or month is None or not figures or len(figures) > 2:
        return None
    years = [one for one in figures if len(one) == 4]
    days = [one for one in figures if len(one) < 3]
    if len(days) == 2 and not years:  # "4 May 26": who writes the year first writes four figures
        days, years = days[:1], days[1:]
    if len(days) > 1 or len(years) > 1 or len(days) + len(years) < len(figures):
        return None
    day = int(days[0]) if days else None
    if day is not None and not 1 <= day <= 31:
        return None
    return WrittenDate(_full_year(years[0]) if years else None, month, day)


def _read_figures(figures: list[str], order: str, *, day_first: bool) -> WrittenDate | None:
    if len(figures) == 1 and len(figures[0]) in (6, 8) and len(order or "ymd") == 3:
        order = order or "ymd"
        figures = _cut(figures[0], order)
    if len(order) == 3 and len(figures) == 2:
        has_year = any(len(one) > 2 for one in figures)
        order = order.replace("d" if has_year else "y", "")
    for tried in (order,) if order else _guess_orders(figures, day_first=day_first):
        if len(tried) == len(figures):
            found = _name_parts(dict(zip(tried, figures, strict=True)))
            if found is not None:
                return found
    return None


def _cut(figures: str, order: str) -> list[str]:
    """Figures without marks between them, in parts: the year has what the others leave."""
    parts, at = [], 0
    for part in order:
        length = len(figures) - 2 * (len(order) - 1) if part == "y" else 2
        parts.append(figures[at : at + length])
        at += length
    return parts


def _guess_orders(figures: list[str], *, day_first: bool) -> tuple[str, ...]:
    """The likely ones, the first that is a date counts."""
    days = ("dm", "md") if day_first else ("md", "dm")
    if len(figures) == 1:
        return ("y",) if len(figures[0]) == 4 else ("d",)
    if len(figures) == 3:
        return ("ymd", "ydm") if len(figures[0]) == 4 else tuple(f"{one}y" for one in days)
    if len(figures[0]) == 4:
        return ("ym",)
    return ("my",) if len(figures[1]) == 4 else days


def _name_parts(parts: Mapping[str, str]) -> WrittenDate | None:
    year, month, day = (parts.get(one) for one in "ymd")
    if day is not None and not 1 <= int(day) <= 31:
        return None
    if month is not None and not 1 <= int(month) <= len(_MONTHS):
        return None
    if year is not None and len(year) > 4:
        return None
    return WrittenDate(
        None if year is None else _full_year(year),
        None if month is None else _MONTHS[int(month) - 1],
        None if day is None else int(day),
    )


def _full_year(figures: str) -> int:
    year = int(figures)
    if len(figures) != 2:
        return year
    return year + (2000 if year < _FIRST_OF_1900S else 1900)
