"""Rules for how long something lasts: "1:30:45", "1h 30m", "3'45\\""."""

from __future__ import annotations

import re

from cantata_layers.english import numbers
from cantata_layers.english.tokens import Expansion, rule, say

_FEW_HOURS = 6
_UNITS = ("hour", "minute", "second")
_CLOCK_BEFORE = re.compile(
    r"\b(?:at|by|until|till|since|from|around|about|before|after|between|and|it's|it\sis|now|today"
    r"|yesterday|tomorrow|noon|time\sis|from\s\d{1,2}:\d\d(?::\d\d)?\s(?:to|through)"
    r"|\d{4}-\d\d-\d\d|\d{1,4}/\d{1,2}/\d{1,4}|[A-Za-z]{3,9}day),?\s$",
    re.ASCII | re.IGNORECASE,
)
_LASTING_BEFORE = re.compile(
    r"\b(?:in|takes?|took|lasts?|lasted|runs?|ran|running\stime|length|duration|record|best)"
    r"(?:\s(?:of|is|was|a|for))?:?\s$",
    re.ASCII | re.IGNORECASE,
)
_LASTING_AFTER = re.compile(
    r"\s(?:long|marathon|left|remaining|record|recording|video|film|movie|track|song|episode)\b",
    re.ASCII,
)
_ZONE_AFTER = re.compile(
    r"\s?(?:[AaPp]\.?\s?[Mm]\b|Z\b|GMT\b|UTC\b|[CEMPB]E?[SD]?T\b|o'clock|today\b|tomorrow\b|sharp\b"
    r"|on\s)",
    re.ASCII,
)
_DESCRIBED_BEFORE = re.compile(r"\b(?:an?|another)\s$", re.IGNORECASE | re.ASCII)


def _count(amount: str, unit: str, *, single: bool = False) -> list[str]:
    """Returns "one hour", "two minutes"; `single`: "two minute", as before "video"."""
    return [*numbers.number(amount), unit if single or amount == "1" else f"{unit}s"]


def _describes(match: re.Match[str]) -> bool:
    left = match.string[max(0, match.start() - 9) : match.start()]
    return _DESCRIBED_BEFORE.search(left) is not None


def _duration(match: re.Match[str]) -> Expansion:
    """Reads "1h 30m" and "2m 5s"."""
    words: list[str] = []
    for name in _UNITS:
        if match[name]:
            words += _count(str(int(match[name])), name)
    return say(match, words)


def _running_time(match: re.Match[str]) -> Expansion:
    """Reads "1:30:45" as a duration, unless it is a time of day: "at 9:30:15", "14:30:15"."""
    text, hour = match.string, match["hour"]
    left = text[max(0, match.start() - 24) : match.start()]
    if _ZONE_AFTER.match(text, match.end()) or _CLOCK_BEFORE.search(left):
        return None
    lasting = _LASTING_BEFORE.search(left) or _LASTING_AFTER.match(text, match.end())
    # Nobody runs for six hours, and films are shorter; clocks often write no zero.
    if (len(hour) > 1 or int(hour) >= _FEW_HOURS) and int(hour) <= 24 and not lasting:
        return None
    words: list[str] = []
    for unit in _UNITS:
        amount = re.sub(r"^0+(?=\d)", "", match[unit])
        words += [] if amount == "0" else _count(amount, unit, single=_describes(match))
    return say(match, words or ["zero", "seconds"])


def _minutes_and_seconds(match: re.Match[str]) -> Expansion:
    """Reads "3'45\\"": no feet and inches, of which there are at most eleven."""
    single, seconds = _describes(match), str(int(match["second"]))
    minutes = _count(match["minute"], "minute", single=single)
    return say(match, [*minutes, *_count(seconds, "second", single=single)])


RULES = (
    rule(
        r"(?<![\w:.])(?P<hour>\d{1,3}):(?P<minute>[0-5]\d):(?P<second>[0-5]\d(?:\.\d{1,3})?)"
        r"(?![\w:]|[.]\d)",
        _running_time,
    ),
    rule(
        r"(?<![\w.])(?:(?P<hour>\d{1,3})\s?h(?:rs?)?\s?(?P<minute>\d{1,2})\s?m(?:in)?"
        r"(?:\s?(?P<second>\d{1,2})\s?s(?:ec)?)?)(?!\w)",
        _duration,
    ),
    rule(
        r"(?<![\w.])(?P<hour>(?!))?(?P<minute>\d{1,3})\s?m(?:in)?\s?(?P<second>\d{1,2})\s?s(?:ec)?"
        r"(?!\w)",
        _duration,
    ),
    rule(
        r"(?<![\w.°])(?P<minute>[1-9]\d?|0)'\s?(?P<second>1[2-9]|[2-5]\d|0\d)(?:\"|''|(?![\w\"']))"
        r"(?!\w)",
        _minutes_and_seconds,
    ),
)
