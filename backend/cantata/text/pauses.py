"""Pauses: `[pause 1.5s]`, `<break time="500ms"/>`, `<break strength="strong"/>`."""

from __future__ import annotations

import re

from cantata.contract.data.errors import InvalidRequest

MAX_PAUSE_S = 10.0
STRENGTHS_S = {
    "none": 0.0,
    "x-weak": 0.25,
    "weak": 0.5,
    "medium": 0.75,
    "strong": 1.0,
    "x-strong": 1.25,
}
"""Seconds for each `strength` of SSML, as in other services; `medium` is the default."""

_LENGTH = re.compile(r"\s*\+?(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>ms|s)\s*", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0}
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*[\\\"'\u201c\u201d]*([^\\\"'\u201c\u201d/]*)")


def pause_s(found: re.Match[str]) -> float:
    """Seconds of a `[pause ...]`, with groups `length` and `closed`. Raises InvalidRequest: not
    written as a pause, or too long; says which and where."""
    length = _LENGTH.fullmatch(found["length"])
    if length is None or not found["closed"]:
        raise _build_error(found, "is not a pause")
    seconds = _check_length(found, length)
    if seconds == 0:
        raise _build_error(found, "has a length out of range")
    return seconds


def break_s(found: re.Match[str]) -> float:
    """Seconds of a `<break ...>`, with a group `attributes`. Raises InvalidRequest: as `pause_s`; a
    break of no length is none."""
    attributes = {name.lower(): value for name, value in _ATTRIBUTE.findall(found["attributes"])}
    if "time" not in attributes:
        strength = attributes.get("strength", "medium").strip().lower()
        if strength not in STRENGTHS_S:
            raise _build_error(found, f"is not a pause; strengths are {', '.join(STRENGTHS_S)}")
        return STRENGTHS_S[strength]
    length = _LENGTH.fullmatch(attributes["time"])
    if length is None:
        raise _build_error(found, "is not a pause")
    return _check_length(found, length)


def _check_length(found: re.Match[str], length: re.Match[str]) -> float:
    seconds = float(length["number"]) * _SECONDS[length["unit"].lower()]
    if seconds > MAX_PAUSE_S:
        raise _build_error(found, "has a length out of range")
    return seconds


def _build_error(found: re.Match[str], problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"{found[0]!r} at character {found.start()} {problem}; valid are [pause 1.5s], "
        f'[pause 500ms] and <break time="500ms"/>, above 0 and at most {MAX_PAUSE_S:g} s',
        "input",
    )
