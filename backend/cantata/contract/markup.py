"""What a text may hold beside words, whatever the model: `[pause 1.5s]`, `[pause 500ms]`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cantata.contract.errors import InvalidRequest
from cantata.contract.request import TextSpan

MAX_PAUSE_S = 10.0

_MAX_SHOWN = 40
# Two brackets are some models' own notation. A markup of which the end has not arrived yet, or
# never will, ends with the text.
_MARKUP = re.compile(
    rf"(?<!\[) \[ \s* pause (?!\w) (?P<length> [^\[\]]{{0,{_MAX_SHOWN}}}) (?P<end> \]?)",
    re.IGNORECASE | re.VERBOSE,
)
_LENGTH = re.compile(r"\s*(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>ms|s)\s*", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0}


@dataclass(frozen=True, slots=True)
class Passage:
    """Text to be spoken."""

    text: str
    start: int
    """Its offset in the whole text."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence between two passages."""

    duration_s: float


def split_pauses(text: str) -> list[Passage | Pause]:
    """Cut a text at its pauses; passages of spaces alone are left out.

    Raises:
        InvalidRequest: a pause that is not written as one, or is too long; says which and where.
    """
    parts: list[Passage | Pause] = []
    start = 0
    for found in _MARKUP.finditer(text):
        parts.extend(_passage(text, start, found.start()))
        parts.append(Pause(_duration_s(found)))
        start = found.end()
    parts.extend(_passage(text, start, len(text)))
    return parts


def pause_spans(text: str) -> list[TextSpan]:
    """Where pauses stand in a text that is still arriving; the last one may be incomplete."""
    return [TextSpan(*found.span()) for found in _MARKUP.finditer(text)]


def without_pauses(text: str) -> str:
    """The text with a space for each pause."""
    return _MARKUP.sub(" ", text)


def _passage(text: str, start: int, end: int) -> Iterator[Passage]:
    if text[start:end].strip():
        yield Passage(text[start:end], start)


def _duration_s(found: re.Match[str]) -> float:
    length = _LENGTH.fullmatch(found["length"])
    if length is None or not found["end"]:
        raise _refusal(found, "is not a pause")
    duration_s = float(length["number"]) * _SECONDS[length["unit"].lower()]
    if not 0 < duration_s <= MAX_PAUSE_S:
        raise _refusal(found, "has a length out of range")
    return duration_s


def _refusal(found: re.Match[str], problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"{found[0]!r} at character {found.start()} {problem}; valid are [pause 1.5s] and "
        f"[pause 500ms], above 0 and at most {MAX_PAUSE_S:g} s",
        "input",
    )
