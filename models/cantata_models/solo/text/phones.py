"""The phone inventory: ARPAbet without stress, as pocketsphinx's cmudict spells it."""

from __future__ import annotations

VOWELS: tuple[str, ...] = (
    *("AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"),
)

CONSONANTS: tuple[str, ...] = (
    *("B", "CH", "D", "DH", "F", "G", "HH", "JH", "K", "L", "M", "N", "NG", "P", "R", "S", "SH"),
    *("T", "TH", "V", "W", "Y", "Z", "ZH"),
)

PHONES: tuple[str, ...] = tuple(sorted(VOWELS + CONSONANTS))
"""The 39 phones in alphabetical order. Trained weights depend on this order."""

SIL = "SIL"
"""Silence: the start and end of a sentence, and every punctuation mark that pauses."""
