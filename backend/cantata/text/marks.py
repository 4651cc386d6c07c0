"""Elements of SSML without text: where `<mark name="..."/>` stands, and `<bookmark mark="..."/>`,
as Azure writes it; which lexicons a text names."""

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


def find_lexicons(text: str) -> list[str]:
    """The lexicons that a text names by `<lexicon uri="..."/>`."""
    return [
        uri
        for found in TOKENS.finditer(text if "<lexicon" in text.lower() else "")
        if found.lastgroup == "tag" and found["name"].lower() == "lexicon"
        if (uri := read_attributes(found["more"]).get("uri"))
    ]
