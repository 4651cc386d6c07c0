# ruff: noqa: RUF001 (a dash between days is meant)
"""Rules for dates, decades and times of day. Americans read numeric dates month first."""

from __future__ import annotations

import re

from cantata_layers.english import numbers
from cantata_layers.english.slashes import is_calculated
from cantata_layers.english.tokens import (
    Accent,
    Expansion,
    Pause,
    Strength,
    rule,
    say,
    say_in,
    sentence_end_follows,
    word_list,
)

_MONTHS = word_list(
    "january february march april may june july august september october november december"
)
_MONTH = (
    r"(?P<month>January|February|March|April|May|June|July|August|September|October|November"
    r"|December|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\b\.?)"
)
_DAY = r"(?P<day>[12]\d|3[01]|0?[1-9])"
_LAST_DAY = r"(?:\s?[-–]\s?(?P<last>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?)?"
_FIRST_DAY = r"(?:(?P<first>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?\s?[-–]\s?)?"
_YEAR = r"(?P<year>1\d{3}|20\d\d|21\d\d)"
_NO_DIGITS_FOLLOW = r"(?!\d|[,.:/]\d|\w)"
_WEEKDAYS = {
    "Mon": "monday",
    "Tue": "tuesday",
    "Wed": "wednesday",
    "Thu": "thursday",
    "Fri": "friday",
    "Sat": "saturday",
    "Sun": "sunday",
}
_WEEKDAY = r"(?P<weekday>Mon|Tues|Tue|Wed|Thurs|Thu|Fri|Sat|Sun)"
_ANY_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_ANY_MONTH = _MONTH.replace("?P<month>", "?:")
_DATE_BEFORE = re.compile(
    r"\b(?:on|due|dated?|since|until|till|expires|expiring|exp|dob|born|deadline|arrives|departs"
    r"|posted|updated|released|(?:mon|tues|wednes|thurs|fri|satur|sun)day|mon|tue|tues|wed|thu|thurs"
    r"|fri|sat|sun)[.:,]?\s(?:on\s|by\s)?$",
    re.ASCII | re.IGNORECASE,
)
_SHORT_MONTH = r"(?P<month>Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)"
_SLASHED_DATE = r"(?<![\w/])(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<year>\d{4}|\d\d)(?![\w/])"
_POINTED_DATE = (
    r"(?<!\w)(?P<a>\d{1,2})(?P<mark>[.-])(?P<b>\d{1,2})(?P=mark)(?P<year>[12]\d{3})(?!\w|[.-]\d)"
)
_TWO_NUMBERS = r"(?<![\w/.])(?P<a>\d{1,2})/(?P<b>\d{1,2})(?![\w/%\"]|[.,]\d)"
_MERIDIEM = r"(?P<meridiem>[AaPp](?:\.\s?[Mm]\.|[Mm](?![\w])\.?))"


def _month(name: str) -> str | None:
    key = name.lower().rstrip(".")[:3]
    return next((month for month in _MONTHS if month.startswith(key)), None)


def _date(match: re.Match[str]) -> Expansion:
    groups = match.groupdict()
    month = _month(groups["month"])
    assert month is not None
    words = [month]
    the = say_in(Accent.BRITISH, "the")
    if groups.get("day"):
        words += [*the, *numbers.ordinal(int(groups["day"]))]
    if groups.get("last"):
        words += ["to", *the, *numbers.ordinal(int(groups["last"]))]
    if groups.get("year"):
        words += numbers.year(int(groups["year"]))
    return say(match, words)


def _article(match: re.Match[str]) -> str:
    """Returns the article of a day, unless it is written before it."""
    left = match.string[max(0, match.start() - 5) : match.start()]
    return "" if re.search(r"\bthe\s$", left, re.IGNORECASE) else "the"


def _day(match: re.Match[str], month: int, day: int) -> list[str] | None:
    """Reads a day that is written in figures: "march fifth", "the fifth of march"; None: no day."""
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    name = _MONTHS[month - 1]
    return [
        *say_in(Accent.AMERICAN, name),
        *say_in(Accent.BRITISH, _article(match)),
        *numbers.ordinal(day),
        *say_in(Accent.BRITISH, f"of {name}"),
    ]


def _full_year(digits: str) -> int:
    value = int(digits)
    if len(digits) > 2:
        return value
    return value + (2000 if value < 50 else 1900)


def _day_first(match: re.Match[str]) -> Expansion:
    month = _month(match["month"])
    assert month is not None
    words = _article(match).split()
    if match.groupdict().get("first"):
        words += [*numbers.ordinal(int(match["first"])), "to", "the"]
    words += [*numbers.ordinal(int(match["day"])), "of", month]
    return say(match, words + (numbers.year(int(match["year"])) if match["year"] else []))


def _digits_date(match: re.Match[str]) -> Expansion:
    """Reads a numeric date month first, unless the first number can only be a day."""
    first, second = int(match["a"]), int(match["b"])
    words = _day(match, first, second) or _day(match, second, first)
    return say(match, words + numbers.year(_full_year(match["year"]))) if words else None


def _british_date(match: re.Match[str]) -> Expansion:
    """Reads a numeric date day first; declines one whose second number can only be a day."""
    words = _day(match, int(match["b"]), int(match["a"]))
    return say(match, words + numbers.year(_full_year(match["year"]))) if words else None


def _named_month(match: re.Match[str]) -> Expansion:
    """Reads "15-Mar-2024" and "15-MAR-24"."""
    month = _month(match["month"])
    assert month is not None
    words = _day(match, _MONTHS.index(month) + 1, int(match["day"]))
    return say(match, words + numbers.year(_full_year(match["year"]))) if words else None


def _is_short_date(match: re.Match[str]) -> bool:
    """Whether a zero, or the words before, say that "12/05" is a date."""
    left = match.string[max(0, match.start() - 24) : match.start()]
    zero = "0" in (match["a"][0], match["b"][0])
    dated = zero or _DATE_BEFORE.search(left) is not None
    return dated and match[0] not in ("9/11", "24/7", "50/50")


def _short_date(match: re.Match[str]) -> Expansion:
    first, second = int(match["a"]), int(match["b"])
    words = _day(match, first, second) or _day(match, second, first)
    return say(match, words) if words and _is_short_date(match) else None


def _british_short_date(match: re.Match[str]) -> Expansion:
    """Reads "12/05" day first; "25/12", which would be an odd fraction, is a date too."""
    day, month = int(match["a"]), int(match["b"])
    words = _day(match, month, day)
    is_date = (day > 12 and month > 8 and not is_calculated(match)) or _is_short_date(match)
    return say(match, words) if words and is_date else None


def _pointed_day(match: re.Match[str]) -> Expansion:
    """Reads "5. Nov 2020" as the day that Europeans write so."""
    left = match.string[max(0, match.start() - 12) : match.start()]
    if not (match["year"] or re.search(r"\b(?:on|the|since|until|by|from|of)\s$", left, re.I)):
        return None
    return _day_first(match)


def _century_decade(match: re.Match[str]) -> Expansion:
    """Reads "the 830s"."""
    century, rest = divmod(int(match["decade"]), 100)
    if not rest:
        return say(match, numbers.plural(numbers.cardinal(century * 100)))
    return say(match, [*numbers.cardinal(century), *numbers.plural(numbers.cardinal(rest))])


def _iso_date(match: re.Match[str]) -> Expansion:
    words = _day(match, int(match["month"]), int(match["day"]))
    if words is None:
        return None
    words += numbers.year(int(match["year"]))
    if match["hour"]:
        words += ["at", *_clock(int(match["hour"]), match["minute"], match["second"], None)]
    return say(match, words + (["U", "T", "C"] if match["zone"] else []))


def _decade(match: re.Match[str]) -> Expansion:
    value = int(match["decade"])
    return say(
        match, numbers.plural(numbers.year(value) if value > 99 else numbers.cardinal(value))
    )


def _clock(hour: int, minute: str | None, second: str | None, meridiem: str | None) -> list[str]:
    """Returns a time of day in words; `meridiem` is "a", "p" or None."""
    words = numbers.cardinal(hour)
    if minute and minute != "00":
        words += (["oh"] if minute[0] == "0" else []) + numbers.number(minute.lstrip("0"))
    elif minute and meridiem is None:
        words += ["o'clock"] if 1 <= hour <= 12 else ["hundred"]
    if second and second != "00":
        count = int(second)
        words += ["and", *numbers.cardinal(count), "second" if count == 1 else "seconds"]
    return words + ([meridiem.upper(), "M"] if meridiem else [])


def _time(match: re.Match[str]) -> Expansion:
    groups = match.groupdict()
    hour, meridiem = int(groups["hour"]), groups.get("meridiem")
    if hour > 24 or (meridiem and not 1 <= hour <= 12):
        return None
    words = _clock(
        hour, groups.get("minute"), groups.get("second"), meridiem[0].lower() if meridiem else None
    )
    if groups.get("part"):
        # A running time: "three fifty nine point four".
        words += ["point", *numbers.digits(groups["part"])]
    items = say(match, words)
    if meridiem and meridiem.endswith(".") and sentence_end_follows(match.string, match.end()):
        items.append(Pause(Strength.SENTENCE))
    return items


def _slashed_iso(match: re.Match[str]) -> Expansion:
    words = _day(match, int(match["month"]), int(match["day"]))
    if words is None:
        return None
    words += numbers.year(int(match["year"]))
    return say(match, words)


def _weekday(match: re.Match[str]) -> Expansion:
    return say(match, _WEEKDAYS[match["weekday"][:3]])


def _dotted_weekday(match: re.Match[str]) -> Expansion:
    items = say(match, _WEEKDAYS[match["weekday"]])
    if sentence_end_follows(match.string, match.end()):
        items.append(Pause(Strength.SENTENCE))
    return items


def _last_weekday(match: re.Match[str]) -> Expansion:
    return _weekday(match) if _follows_day_or_month(match) else None


def _month_alone(match: re.Match[str]) -> Expansion:
    return say(match, _month(match["month"]) or "")


def _last_month(match: re.Match[str]) -> Expansion:
    return _month_alone(match) if _follows_day_or_month(match) else None


def _follows_day_or_month(match: re.Match[str]) -> bool:
    """Whether a weekday or month name comes before, ignoring a dash."""
    left = match.string[max(0, match.start() - 14) : match.start()]
    before = re.search(r"\b([A-Z][a-z]{2})[a-z]{0,6}\.?(?:\s?[-–]\s?)?$", left)
    return before is not None and (before[1] in _WEEKDAYS or _month(before[1]) is not None)


def _to_next(match: re.Match[str]) -> Expansion:
    """Reads the dash between two weekdays or two months."""
    return say(match, "to") if _follows_day_or_month(match) else None


def _ratio(match: re.Match[str]) -> Expansion:
    return say(match, [*numbers.number(match["a"]), "to", *numbers.number(match["b"])])


RULES = (
    rule(
        r"(?<!\w)(?P<year>1\d{3}|2[01]\d\d)-(?P<month>[01]\d)-(?P<day>[0-3]\d)"
        r"(?:[T ](?P<hour>[0-2]\d):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:\.\d{1,9})?)?"
        r"(?P<zone>Z?))?(?!\w)",
        _iso_date,
    ),
    rule(
        r"(?<![\w/])(?P<year>1\d{3}|2[01]\d\d)/(?P<month>[01]\d)/(?P<day>[0-3]\d)(?![\w/])",
        _slashed_iso,
    ),
    # "Sat" and "Sun" are also ordinary words; the text before or after decides.
    rule(
        rf"(?<![\w']){_WEEKDAY}\b\.?(?=,?\s(?:\d|{_ANY_MONTH})|\s?[-–]\s?{_ANY_WEEKDAY}(?:\b|[a-z]*day))",
        _weekday,
    ),
    rule(
        r"(?:(?<=\b[Oo]n )|(?<=\bnext )|(?<=\blast )|(?<=\bthis )|(?<=\bevery ))"
        r"(?P<weekday>Sat|Sun)\.(?!\w)",
        _dotted_weekday,
    ),
    rule(rf"(?<=[-–]){_WEEKDAY}\b\.?", _last_weekday),
    rule(rf"(?<=[-–]\s){_WEEKDAY}\b\.?", _last_weekday),
    rule(rf"\s?[-–]\s?(?={_ANY_WEEKDAY}(?:r?s?\b|[a-z]*day\b))", _to_next),
    rule(rf"(?<![\w']){_SHORT_MONTH}\b\.?(?=\s?[-–]\s?{_ANY_MONTH})", _month_alone),
    rule(rf"(?<=[-–]){_SHORT_MONTH}\b\.?(?!\s\d)", _last_month),
    rule(rf"\s?[-–]\s?(?={_ANY_MONTH})", _to_next),
    rule(_SLASHED_DATE, _british_date, Accent.BRITISH),
    rule(_POINTED_DATE, _british_date, Accent.BRITISH),
    rule(_SLASHED_DATE, _digits_date),
    rule(_POINTED_DATE, _digits_date),
    rule(
        rf"(?<!\w){_MONTH}\s{{1,2}}{_DAY}(?:st|nd|rd|th)?{_LAST_DAY}(?:,?\s{{1,2}}{_YEAR})?"
        rf"{_NO_DIGITS_FOLLOW}",
        _date,
    ),
    rule(
        rf"(?<![\w.,]){_FIRST_DAY}{_DAY}(?:st|nd|rd|th)?\s{{1,2}}(?:of\s)?{_MONTH}(?![a-z])"
        rf"(?:,?\s{{1,2}}{_YEAR}{_NO_DIGITS_FOLLOW})?",
        _day_first,
    ),
    rule(rf"(?<!\w){_MONTH},?\s{{1,2}}{_YEAR}{_NO_DIGITS_FOLLOW}", _date),
    rule(
        rf"(?<!\w)(?P<day>\d{{1,2}})[-/ ]{_SHORT_MONTH[:-1]}"
        r"|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC|May|June|July)[-/](?P<year>\d{4}|\d\d)(?!\w)",
        _named_month,
    ),
    rule(_TWO_NUMBERS, _british_short_date, Accent.BRITISH),
    rule(_TWO_NUMBERS, _short_date),
    rule(
        rf"(?<![\w.,])(?P<day>[12]\d|3[01]|0?[1-9])\.\s{{1,2}}{_MONTH}(?![a-z])(?:,?\s{_YEAR}{_NO_DIGITS_FOLLOW})?",
        _pointed_day,
    ),
    rule(r"(?<!\w)'?(?P<decade>(?!1000)1\d\d0|20\d0|[2-9]0)'?s(?!\w)", _decade),
    rule(
        r"(?:(?<=\bthe )|(?<=early )|(?<=late )|(?<=mid-)|(?<=\bin ))(?P<decade>[1-9]\d0)'?s(?!\w)",
        _century_decade,
    ),
    rule(
        rf"(?<![\w:.])(?P<hour>[01]?\d|2[0-4])[.](?P<minute>[0-5]\d)\s?{_MERIDIEM}",
        _time,
    ),
    rule(
        r"(?<![\w:.])(?P<hour>[01]?\d|2[0-4])[.](?P<minute>[0-5]\d)"
        r"(?=\s?(?:[-–]|to|and)\s?\d{1,2}(?:[.:][0-5]\d)?\s?[AaPp]\.?[Mm]\b)",
        _time,
    ),
    rule(
        r"(?:(?<=\b[Aa]t )|(?<=\b[Uu]ntil )|(?<=\b[Tt]ill )|(?<=\b[Ss]ince ))"
        r"(?P<hour>[01]?\d|2[0-3])[.](?P<minute>[0-5]\d)"
        r"(?=[,;]?\s(?:on|today|tomorrow|tonight|sharp|hrs|hours|GMT|UTC|[CEB]E?ST"
        r"|[MTWFS][a-z]{2,5}day)\b|\s?h\b)",
        _time,
    ),
    rule(
        r"(?<![\w:.])(?P<hour>0?[1-9]|1[0-2]):(?P<minute>[0-5]\d)(?P<meridiem>[ap])(?![\w'.])",
        _time,
    ),
    rule(
        r"(?<![\w:.])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?"
        rf"(?:\.(?P<part>\d{{1,3}})(?!\d))?(?![\d:])(?:\s?{_MERIDIEM})?",
        _time,
    ),
    rule(rf"(?<![\w:.])(?P<hour>\d{{1,2}})\s?{_MERIDIEM}", _time),
    rule(r"(?<![\w:.])(?P<a>\d{1,4}):(?P<b>\d{1,4})(?![\d:])", _ratio),
)
