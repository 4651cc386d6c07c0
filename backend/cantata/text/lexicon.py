"""Reads words of a text as a lexicon says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from cantata.contract.data.request import LexiconEntry
from cantata.text.passages import Passage

_WORD = re.compile(r"\w+")


def select_entries(text: str, entries: Iterable[LexiconEntry]) -> tuple[LexiconEntry, ...]:
    """The entries whose graphemes may occur in a text; the first of each grapheme."""
    words = set(_WORD.findall(text))
    found: dict[str, LexiconEntry] = {}
    for entry in entries:
        first = _WORD.search(entry.grapheme)
        if (first is None or first[0] in words) and entry.grapheme in text:
            found.setdefault(entry.grapheme, entry)
    return tuple(found.values())


def apply_lexicon(passage: Passage, entries: Sequence[LexiconEntry], *, phones: bool) -> Passage:
    """The passage with each grapheme, as a whole word, replaced by its alias or phones. The longest
    counts; what has been replaced, and phones, are not looked up again.

    Args:
        phones: the model reads phones in `[[...]]`; else entries with phones have no effect.
    """
    said = {
        entry.grapheme: f"[[/{entry.phones}/]]" if entry.phones else entry.alias
        for entry in entries
        if phones or not entry.phones
    }
    if not said:
        return passage
    longest_first = sorted(said, key=len, reverse=True)
    graphemes = "|".join(map(re.escape, longest_first))
    pattern = re.compile(rf"\[\[[^\[\]]{{0,2000}}\]\]|(?<!\w)({graphemes})(?!\w)")
    text, starts, ends = list[str](), list[int](), list[int]()
    place = 0
    for found in pattern.finditer(passage.text):
        if found[1] is None:
            continue
        begin, end = found.span()
        word = said[found[1]]
        text += [passage.text[place:begin], word]
        starts += [*passage.starts[place:begin], *[passage.starts[begin]] * len(word)]
        ends += [*passage.ends[place:begin], *[passage.ends[end - 1]] * len(word)]
        place = end
    text.append(passage.text[place:])
    starts += passage.starts[place:]
    ends += passage.ends[place:]
    return replace(passage, text="".join(text), starts=tuple(starts), ends=tuple(ends))
