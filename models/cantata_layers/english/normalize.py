"""Turns text into spoken words and pauses, each word with the characters it came from.

It makes one pass over the folded text. At each token the rules are tried in order, and the first
one that accepts its match decides how to read it. So more specific rules come first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from cantata_layers.english import (
    abbreviations,
    addresses,
    citations,
    codes,
    dates,
    durations,
    formulas,
    lengths,
    money,
    number_rules,
    places,
    quantities,
    roman_rules,
    slashes,
    symbols,
    words,
)
from cantata_layers.english.folding import OVERRIDE, fold
from cantata_layers.english.tokens import Accent, Expansion, Item, Pause, Rule, Spoken, rule


def _override(match: re.Match[str]) -> Expansion:
    """Leaves the caller's own phones for one word, `[[kæt]]`, to who pronounces it."""
    phones = match["phones"].strip()
    return [Spoken(phones.lower(), match.start(), match.end(), phones)]


RULES: tuple[Rule, ...] = (
    rule(OVERRIDE, _override),
    *addresses.RULES,
    *formulas.RULES,
    *codes.COLONS,
    *number_rules.RATIOS,
    *citations.RULES,
    *durations.RULES,
    *dates.RULES,
    *places.RULES,
    *codes.RULES,
    *abbreviations.RULES,
    *quantities.RATES,
    *slashes.RULES,
    *lengths.RULES,
    *money.RULES,
    *quantities.RULES,
    *roman_rules.RULES,
    *number_rules.RULES,
    words.ION,
    words.CHEMICAL,
    words.MIXED,
    number_rules.PLAIN,
    *words.RULES,
    *symbols.RULES,
)


_RULES_OF = {
    accent: tuple(one for one in RULES if one.accent in (None, accent)) for accent in Accent
}


def _scan(text: str, accent: Accent) -> Iterable[Item]:
    position = 0
    rules = _RULES_OF[accent]
    while position < len(text):
        for candidate in rules:
            match = candidate.pattern.match(text, position)
            if match is None or match.end() == position:
                continue
            items = candidate.expand(match)
            if items is not None:
                yield from items
                position = match.end()
                break
        else:
            position += 1


def normalize(text: str, accent: Accent = Accent.AMERICAN) -> list[Item]:
    """Returns the words and pauses of a text as an accent says them, with offsets into the text.

    The words' spans are in order. Any two spans are either equal or disjoint. Words that share a
    character of the text, such as those of "$3.50" or of one ligature, share one span.
    """
    folded = fold(text)
    items: list[Item] = []
    for item in _scan(folded.text, accent):
        if isinstance(item, Spoken):
            if item.accent not in (None, accent):
                continue
            start, end = folded.span(item.start, item.end)
            item = replace(item, start=start, end=end)
        items.append(item)
    return _share_spans(items)


def _share_spans(items: list[Item]) -> list[Item]:
    """Gives one span to words that overlap in the caller's text (one character folded to many)."""
    groups: list[list[Spoken]] = []
    end = 0
    for item in items:
        if isinstance(item, Spoken):
            if not groups or item.start >= end:
                groups.append([])
            groups[-1].append(item)
            end = max(end, item.end)
    spans = ((group[0].start, max(word.end for word in group)) for group in groups for _ in group)
    return [item if isinstance(item, Pause) else _with_span(item, *next(spans)) for item in items]


def _with_span(word: Spoken, start: int, end: int) -> Spoken:
    same = (word.start, word.end) == (start, end)
    return word if same else replace(word, start=start, end=end)
