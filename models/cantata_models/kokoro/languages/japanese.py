# ruff: noqa: RUF001 (letters of full width)
"""Japanese, by misaki and the dictionary UniDic (unidic-lite)."""

from __future__ import annotations

import re
import threading
import unicodedata
import warnings
from typing import Any

from cantata_layers.misaki.places import CHARACTER, Places
from cantata_models.kokoro.languages.said import SaidPart, take_letters

with warnings.catch_warnings():
    # It opens its word list in a way that Python 3.11 discourages.
    warnings.simplefilter("ignore", DeprecationWarning)
    from misaki.cutlet import Cutlet

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DECIMALS = re.compile(r"(?<=\d)\.(\d+)")
_LONG_NUMBER = re.compile(r"\d{10,}")
"""misaki reads at most nine digits as one number."""


class JapaneseG2P:
    """Implements `SentenceG2P`. Numbers with commas and points, percents and long numbers, which
    misaki misreads, are written out for it."""

    reads_latin = False

    def __init__(self) -> None:
        self._cutlet = Cutlet()
        self._words: list[tuple[str, str]] = []
        self._spell = self._cutlet._romaji_word
        # It gives phones alone; this says which word each belongs to.
        self._cutlet._romaji_word = self._record
        self._lock = threading.Lock()

    def read(self, text: str) -> list[SaidPart]:
        """The phones of `misaki.ja.JAG2P`."""
        with self._lock:
            self._words = []
            plain = write_out(text)
            phones: str = self._cutlet(plain)[0]
            words, said = self._words, self._cutlet._normalize_text(plain)
        places = Places(text, said, CHARACTER)
        made = list[SaidPart]()
        heard = seen = 0
        for surface, spelled in words:
            seen_end = take_letters(said, seen, _count(surface))
            end = take_letters(phones, heard, _count(spelled.replace("っ", "")))
            if end > heard:
                span = places.find(seen, seen_end)
                word = phones[heard:end].lstrip()
                made += [
                    SaidPart(" " * (len(word) < end - heard), span.start, span.start),
                    SaidPart(word, span.start, span.end),
                ]
            heard, seen = end, seen_end
        return made

    def _record(self, word: Any) -> str:
        spelled: str = self._spell(word)
        self._words.append((word.surface, spelled))
        return spelled


def write_out(text: str) -> str:
    """A text with the numbers in it as misaki can read them."""
    # Decimals of other scripts are digits to it, too, but not in its table.
    digits = (str(unicodedata.digit(c)) if c.isdecimal() else c for c in text)
    plain = _THOUSANDS.sub("", "".join(digits).replace("，", ","))
    plain = _DECIMALS.sub(lambda match: "点" + " ".join(match[1]), plain)
    plain = plain.replace("%", "パーセント").replace("％", "パーセント")
    return _LONG_NUMBER.sub(lambda match: " ".join(match[0]), plain)


def _count(text: str) -> int:
    """Letters, spaces not counted."""
    return sum(not letter.isspace() for letter in text)
