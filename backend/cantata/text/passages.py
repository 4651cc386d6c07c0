"""What a text is once its markup has been read: passages to be spoken and pauses between them."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cantata.contract.data.request import InflectedSpan, TextSpan
from cantata.text.ssml import AS_ASKED, Prosody


@dataclass(frozen=True, slots=True)
class Passage:
    text: str
    starts: Sequence[int]
    """For each character of `text`, where it begins in the client's text."""
    ends: Sequence[int]
    """For each character of `text`, where it ends in the client's text."""
    prosody: Prosody = AS_ASKED
    inflections: tuple[InflectedSpan, ...] = ()
    """What stands out, by places in the client's text, in order; some may lie outside."""
    language: str | None = None
    """One of the model's tags. None: the request's."""

    @property
    def inflected(self) -> tuple[InflectedSpan, ...]:
        """What stands out in `text`, by its own places."""
        found = []
        for one in self.inflections:
            start = bisect_left(self.starts, one.span.start)
            end = bisect_right(self.ends, one.span.end)
            if start < end:
                found.append(InflectedSpan(TextSpan(start, end), one.inflection))
        return tuple(found)

    def source(self, span: TextSpan) -> TextSpan:
        """The span in the client's text for one or more characters of `text`."""
        return TextSpan(self.starts[span.start], self.ends[span.end - 1])

    @property
    def has_words(self) -> bool:
        """Whether it contains a letter or a digit."""
        return any(character.isalnum() for character in self.text)

    @property
    def is_silent(self) -> bool:
        """Whether it has only spaces, punctuation and emoji, which no voice should speak."""
        return is_silent(self.text)


@dataclass(frozen=True, slots=True)
class TextPause:
    """Silence between two passages."""

    duration_s: float

    @property
    def mark(self) -> str:
        """The pause as written in a text, in seconds with a decimal."""
        return f"[pause {round(self.duration_s, 3)}s]"


def with_pauses_inside(parts: Sequence[Passage | TextPause]) -> list[Passage | TextPause]:
    """Join passages across the pauses between them, which are written into the text.

    Pauses at either end of what has words stay as they are; so does a text with several prosodies
    or languages.
    """
    spoken = [n for n, part in enumerate(parts) if isinstance(part, Passage) and part.has_words]
    if len({(one.prosody, one.language) for one in parts if isinstance(one, Passage)}) > 1:
        return list(parts)
    if len(spoken) < 2:
        return list(parts)
    first, last = spoken[0], spoken[-1]
    return [*parts[:first], _join_parts(parts[first : last + 1]), *parts[last + 1 :]]


def _join_parts(parts: Sequence[Passage | TextPause]) -> Passage:
    """One passage of several, the first of which is one; a pause stands where the text before it
    ends."""
    texts, starts, ends = list[str](), list[int](), list[int]()
    for part in parts:
        if isinstance(part, Passage):
            texts.append(part.text)
            starts.extend(part.starts)
            ends.extend(part.ends)
        else:
            place = [ends[-1]] * len(part.mark)
            texts.append(part.mark)
            starts.extend(place)
            ends.extend(place)
    first = parts[0]
    assert isinstance(first, Passage)
    return replace(first, text="".join(texts), starts=tuple(starts), ends=tuple(ends))


def is_silent(text: str) -> bool:
    """Whether a text has only spaces, punctuation and emoji."""
    return all(map(_is_silent, text))


def _is_silent(character: str) -> bool:
    kind = unicodedata.category(character)
    if kind == "So":
        return character >= "\u2190"  # arrows, dingbats, emoji; not "\u00a9"
    return kind[0] in "ZCM" or kind == "Sk" or (kind[0] == "P" and character not in "%&@#")
