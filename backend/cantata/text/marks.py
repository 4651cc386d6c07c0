"""Where `<mark name="..."/>` stands in a text, and `<bookmark mark="..."/>`, as Azure writes it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cantata.text.patterns import TOKENS
from cantata.text.ssml import read_attributes

_ATTRIBUTES = {"mark": "name", "bookmark": "mark"}


@dataclass(frozen=True, slots=True)
class TextMark:
    """A place that the client wants the time of."""

    name: str
    place: int
    """In the client's text, by code point."""
    before_pause: bool = False
    """A pause that was asked for lies between it and the next word."""


def find_marks(text: str) -> list[TextMark]:
    """The marks of a text, in order."""
    marks: list[TextMark] = []
    settled = end = 0
    for found in TOKENS.finditer(text) if "mark" in text else ():
        if any(map(str.isalnum, text[end : found.start()])):
            settled = len(marks)
        end = found.end()
        if found.lastgroup in ("break", "pause"):
            marks[settled:] = [replace(one, before_pause=True) for one in marks[settled:]]
        elif found.lastgroup == "tag":
            attribute = _ATTRIBUTES.get(found["name"].lower(), "")
            name = read_attributes(found["more"]).get(attribute, "")
            if name:
                marks.append(TextMark(name, found.start()))
        elif any(map(str.isalnum, found[0])):
            settled = len(marks)
    return marks
