"""Turns text into spoken words and pauses, each word with the characters it came from.

It makes one pass over the folded text. At each token the rules are tried in order, and the first
one that accepts its match decides how to read it. So more specific rules come first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from cantata_models.solo.text import (
    abbreviations,
    addresses,
    citations,
    codes,
    dates,
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
from cantata_models.solo.text.folding import OVERRIDE, fold
from cantata_models.solo.text.ipa import ipa_phones
from cantata_models.solo.text.tokens import (
    PHONES,
    Expansion,
    Item,
    Pause,
    Rule,
    Spoken,
    TextError,
    rule,
)

_SHOWN_PHONES = 5
_VALID = f"valid phones are {' '.join(PHONES)}, or IPA in slashes"


def _override(match: re.Match[str]) -> Expansion:
    """Reads the caller's own phones for one word, as ARPAbet or IPA: `[[K AE T]]`, `[[kæt]]`.

    IPA with only ASCII letters needs slashes: `[[/pit/]]`.
    """
    content = match["phones"].strip()
    if not content.isascii() or re.fullmatch(r"/.+/", content, re.DOTALL):
        phones = ipa_phones(content)
    else:
        phones = _arpabet(content)
    if not phones:
        raise TextError(f"[[...]] holds phones, but has nothing; {_VALID}")
    return [Spoken(content.lower(), match.start(), match.end(), phones)]


def _arpabet(content: str) -> tuple[str, ...]:
    """Parses ARPAbet phones, ignoring stress digits."""
    phones = tuple(phone.rstrip("012").upper() for phone in content.split())
    unknown = [phone for phone in phones if phone not in PHONES]
    if unknown:
        wrong = ", ".join(repr(phone[:20]) for phone in unknown[:_SHOWN_PHONES])
        raise TextError(f"[[...]] holds phones, but has {wrong}; {_VALID}")
    return phones


RULES: tuple[Rule, ...] = (
    rule(OVERRIDE, _override),
    *addresses.RULES,
    *formulas.RULES,
    *codes.COLONS,
    *number_rules.RATIOS,
    *citations.RULES,
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
    words.CHEMICAL,
    words.MIXED,
    number_rules.PLAIN,
    *words.RULES,
    *symbols.RULES,
)


def _scan(text: str) -> Iterable[Item]:
    position = 0
    while position < len(text):
        for candidate in RULES:
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


def normalize(text: str) -> list[Item]:
    """Returns the spoken words and pauses of a text, with offsets into the text.

    The words' spans are in order. Any two spans are either equal or disjoint. Words that share a
    character of the text, such as those of "$3.50" or of one ligature, share one span.

    Raises TextError for a `[[...]]` whose content is not phones.
    """
    folded = fold(text)
    items: list[Item] = []
    for item in _scan(folded.text):
        if isinstance(item, Spoken):
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
