# ruff: noqa: RUF001 (dashes and quotes that look alike are meant)
"""Answers about a text that mostly do without the rules, which take 40 µs a character: whether it
needs them at all, and whether a full stop ends a sentence.
"""

from __future__ import annotations

import re

from cantata_layers.english.abbreviations import DOTTED_NAMES, UNDOTTED_NAMES
from cantata_layers.english.tokens import Spoken, Strength
from cantata_layers.english.units import UNITS_ALONE

_OPENERS = (
    "And|As|Because|But|Can|Could|Did|Do|Have|How|If|May|Maybe|Now|Perhaps|Should|Since|So|That"
    "|Then|Today|Well|What|When|Where|While|Why|Yes|Yesterday"
)
"""Words before which "I" is no numeral."""
_WRITTEN = re.compile(
    r"[^A-Za-zÀ-ɏ\s,.;:!?'\"“”‘’()—–…-]"  # a digit, a sign, another script
    r"|[A-Z]{2}|[a-z][A-Z]"
    r"|(?<!\w)[B-HJ-Z](?!\w)"
    r"|(?<!\w)A(?=[^\w\s'’]|\s*$|\s(?:and|or|to|is|was)\b)"
    r"|\.(?=[^\W_])|\.[\"”’')]*\s(?=\S)"  # a full stop that ends no sentence
    rf"|(?<!\w)(?:{DOTTED_NAMES}|Sat|Sun)\."
    rf"|(?<!\w)(?:{UNDOTTED_NAMES})(?!\w)"
    r"|(?<!\w)[ivx]{2,7}(?!\w)"
    r"|(?<!\w)['‘’][nN]['’](?!\w)"
    r"|(?<!\S)-{1,2}(?=[A-Za-z])"
    r"|(?<!\w)(?:Cl|Br|I)-(?!\w)"
    r"|[A-Z][a-z]+\s?[-–]\s?[A-Z]"
    rf"|(?<!\w)(?!(?:{_OPENERS})\s)[A-Z][a-z]+\sI(?![\w'’])"
    rf"|(?<!\w)(?:{UNITS_ALONE})(?!\w)"
    r"|\w\(|[:;=]['o-]?[)(DPp]"
    r"|([A-Za-z])\1\1"
)


def is_plain(text: str) -> bool:
    """Whether every word of a sentence is surely said as it is written. False: it may be."""
    return _WRITTEN.search(text) is None


_WINDOW = 60
_ABBREVIATION = re.compile(
    rf"(?<!\w)(?:{DOTTED_NAMES}|Mar|Jun|Jul|Sat|Sun|(?:[A-Za-z]\.){{1,8}}[A-Za-z])\.[\"”’')\]]*\s*$"
)


def ends_sentence(text: str, place: int) -> bool:
    """Whether a sentence ends before `place`, where the next word begins after a full stop.

    "in the U.S. He" and "cats, etc. Then" are two sentences, "the U.S. Army" and "no. 5" one.
    """
    begin = max(0, place - _WINDOW)
    if _ABBREVIATION.search(text[begin:place]) is None:
        return True
    # Its patterns take a quarter of a second to compile, and few texts need them here.
    from cantata_layers.english.normalize import normalize

    ended = False
    for item in normalize(text[begin : place + _WINDOW]):
        if not isinstance(item, Spoken):
            ended = ended or item.strength is Strength.SENTENCE
        elif begin + item.end > place:
            return ended
        else:
            ended = False
    return True
