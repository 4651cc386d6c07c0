"""The pronouncing dictionary and its phones: 126,000 English words, loaded on the first lookup."""

from __future__ import annotations

import functools
import lzma
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

VOWELS: tuple[str, ...] = (
    *("AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"),
)

CONSONANTS: tuple[str, ...] = (
    *("B", "CH", "D", "DH", "F", "G", "HH", "JH", "K", "L", "M", "N", "NG", "P", "R", "S", "SH"),
    *("T", "TH", "V", "W", "Y", "Z", "ZH"),
)

PHONES: tuple[str, ...] = tuple(sorted(VOWELS + CONSONANTS))
"""The 39 phones in alphabetical order. Trained weights depend on this order."""

LEXICON_FILE = Path(__file__).with_name("lexicon.txt.xz")

_FIRST_CODE = ord("A")
_CODES = {phone: chr(_FIRST_CODE + index) for index, phone in enumerate(PHONES)}


def encode_phones(phones: tuple[str, ...]) -> str:
    """Returns one character per phone. Raises KeyError for a phone outside `PHONES`."""
    return "".join(_CODES[phone] for phone in phones)


def decode_phones(codes: str) -> tuple[str, ...]:
    """The inverse of `encode_phones`."""
    return tuple(PHONES[ord(code) - _FIRST_CODE] for code in codes)


class Lexicon:
    """Words and their pronunciations, stored as sorted lines.

    A lookup by bisection takes microseconds. Compared with a dict of tuples, the lines load several
    times faster and need a tenth of the memory.
    """

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, word: str) -> bool:
        return self.get(word) is not None

    def get(self, word: str) -> tuple[str, ...] | None:
        """Returns the phones of a lower-case word, or None when it is not listed."""
        key = word + " "
        index = bisect_left(self._lines, key)
        if index == len(self._lines) or not self._lines[index].startswith(key):
            return None
        return decode_phones(self._lines[index][len(key) :])

    def items(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yields every word with its phones, in code-point order."""
        for line in self._lines:
            word, codes = line.split(" ")
            yield word, decode_phones(codes)


@functools.cache
def load_lexicon() -> Lexicon:
    """Returns the shipped lexicon; the first call decompresses it (tens of milliseconds)."""
    return Lexicon(lzma.decompress(LEXICON_FILE.read_bytes()).decode("ascii").split("\n"))
