# ruff: noqa: RUF001 (phones that look like letters are what this file is about)
"""Phones in double brackets (`[[kæt]]`): from the International Phonetic Alphabet to misaki's.

misaki's alphabet (EN_PHONES.md of misaki 0.9) is IPA with one letter for each diphthong and
affricate, American without marks of length, and `ᵊ`, `ᵻ` and `T` for reduced sounds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache

from cantata.contract.data.errors import InvalidRequest
from cantata_layers.misaki.package import find_assets

_MARKS = frozenset("ˈˌː")
"""Of stress and length."""
PHONE_MARKUP = re.compile(r"\[\[([^\[\]]*)\]\]")
_AFFRICATES = {"t͡ʃ": "ʧ", "tʃ": "ʧ", "d͡ʒ": "ʤ", "dʒ": "ʤ"}
_DIPHTHONGS = {"eɪ": "A", "aɪ": "I", "aʊ": "W", "ɔɪ": "Y"}
_SPELLINGS = {"r": "ɹ", "g": "ɡ", "ɫ": "l", "'": "ˈ", ".": "", "ʰ": ""}
_SHARED = {**_AFFRICATES, **_DIPHTHONGS, **_SPELLINGS}
_RHOTIC = {"ɝː": "ɜɹ", "ɝ": "ɜɹ", "ɜː": "ɜɹ", "ɚ": "əɹ"}
_AMERICAN_VOWELS = {"oʊ": "O", "əʊ": "O", "ɒ": "ɑ", "e": "ɛ", "a": "æ", "ɐ": "ʌ", "o": "ɔ"}
_AMERICAN = {**_RHOTIC, **_AMERICAN_VOWELS, "ɾ": "T", "ː": ""}
_BRITISH = {"əʊ": "Q", "oʊ": "Q", "ɝ": "ɜː", "ɚ": "ə", "æ": "a", "e": "ɛ", "ɐ": "ʌ", "ɾ": "t"}


@cache
def vocabulary() -> Mapping[str, int]:
    """Each letter's id; 0 is the padding."""
    ids: dict[str, int] = json.loads((find_assets() / "vocab.json").read_text("utf-8"))
    return ids


def read_phones(written: str, british: bool) -> tuple[int, ...]:
    """The ids of phones that a client wrote, between slashes or not. Raises InvalidRequest:
    nothing, or a character that stands for no phone."""
    rules = {**_SHARED, **(_BRITISH if british else _AMERICAN)}
    pattern = "|".join(re.escape(one) for one in sorted(rules, key=len, reverse=True))
    said = re.sub(pattern, lambda match: rules[match[0]], " ".join(written.split()).strip("/"))
    ids = vocabulary()
    unknown = [letter for letter in said if letter not in ids]
    if unknown or not any(letter.isalpha() and letter not in _MARKS for letter in said):
        problem = f"{unknown[0]!r} is no phone" if unknown else "there are no phones"
        raise InvalidRequest(
            f"[[{written[:40]}]]: {problem}; write IPA, such as [[həˈloʊ]]", "input"
        )
    return tuple(ids[letter] for letter in said)
