"""Turns text into spoken words and pauses, each word with the characters it came from.

One pass over the folded text: at each token the rules are tried in order, and the first that
accepts its match says how it is spoken. More special rules therefore stand first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from cantata_models.solo.text import (
    abbreviations,
    addresses,
    dates,
    number_rules,
    quantities,
    symbols,
    words,
)
from cantata_models.solo.text.errors import TextError
from cantata_models.solo.text.folding import fold
from cantata_models.solo.text.phones import PHONES
from cantata_models.solo.text.tokens import Expansion, Item, Rule, Spoken, rule

_SHOWN_PHONES = 5


def _override(match: re.Match[str]) -> Expansion:
    """`[[HH AH L OW]]`: the caller's own phones, for one word. Stress digits are passed over."""
    phones = tuple(phone.rstrip("012").upper() for phone in match["phones"].split())
    unknown = [phone for phone in phones if phone not in PHONES]
    if unknown or not phones:
        wrong = ", ".join(repr(phone[:20]) for phone in unknown[:_SHOWN_PHONES]) or "nothing"
        raise TextError(
            f"[[...]] holds phones, but has {wrong}; valid phones are {' '.join(PHONES)}"
        )
    return [Spoken(match["phones"].strip().lower(), match.start(), match.end(), phones)]


_RULES: tuple[Rule, ...] = (
    rule(r"\[\[(?P<phones>[^\[\]]{0,2000})\]\]", _override),
    *addresses.RULES,
    *dates.RULES,
    *abbreviations.RULES,
    *quantities.RULES,
    *number_rules.RULES,
    words.MIXED,
    number_rules.PLAIN,
    *words.RULES,
    *symbols.RULES,
)


def _scan(text: str) -> Iterable[Item]:
    position = 0
    while position < len(text):
        for candidate in _RULES:
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
    """Returns the spoken words and pauses of a text, with offsets into it.

    Raises TextError for a `[[...]]` whose content is not phones.
    """
    folded = fold(text)
    items: list[Item] = []
    for item in _scan(folded.text):
        if isinstance(item, Spoken):
            start, end = folded.span(item.start, item.end)
            item = replace(item, start=start, end=end)
        items.append(item)
    return items
