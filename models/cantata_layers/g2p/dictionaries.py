# ruff: noqa: RUF001 (letters of full width)
"""What the front ends of Mandarin Chinese and Japanese make of a text, by misaki.

Chinese becomes IPA with arrows for tones, or, for checkpoints of version 1.1, bopomofo. Japanese
takes the dictionary UniDic (unidic-lite).
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import unicodedata
import warnings
from collections.abc import Iterator
from typing import Any

from platformdirs import user_cache_path

from cantata_layers.g2p.said_parts import CHARACTER, Places, SaidPart


def take_letters(phones: str, start: int, count: int) -> int:
    """The end of the next `count` letters of `phones` from `start`, spaces not counted."""
    while count and start < len(phones):
        count -= not phones[start].isspace()
        start += 1
    return start


with warnings.catch_warnings():
    # Their sources have escapes that newer Pythons warn of when they compile them.
    warnings.simplefilter("ignore")
    import cn2an
    import jieba
    from misaki.zh import ZHG2P

BOPOMOFO = "ㄅ"
"""A letter that the vocabulary of a checkpoint of version 1.1 has."""
_SEGMENT = re.compile("[\u4e00-\u9fff]+|[^\u4e00-\u9fff]")
_UNDER = "\u032f"
"""Below a vowel that is no syllable; Kokoro's vocabulary has no such mark."""


class ChineseG2P:
    """Implements `SentenceG2P`. `bopomofo`: as checkpoints of version 1.1; it takes four seconds to
    load, otherwise one."""

    reads_latin = False

    def __init__(self, bopomofo: bool) -> None:
        _keep_words()
        # Without a reader of English, which it never meets here, it prints a warning.
        self._g2p = ZHG2P(version="1.1" if bopomofo else None, en_callable=str)

    def read(self, text: str) -> list[SaidPart]:
        """The phones of `misaki.zh.ZHG2P`."""
        said = _write_out(text)
        places = Places(text, said, CHARACTER)
        made = list[SaidPart]()
        for phones, start, end in self._read_words(said):
            span = places.find(start, end)
            made.append(SaidPart(phones, span.start, span.end))
        return made

    def _read_words(self, said: str) -> Iterator[tuple[str, int, int]]:
        if self._g2p.frontend is None:
            return _read_ipa(said)
        return _read_bopomofo(said, self._g2p.frontend)


def _read_ipa(said: str) -> Iterator[tuple[str, int, int]]:
    """Phones, spaces and marks, each with its place."""
    for match in _SEGMENT.finditer(said):
        place = match.start()
        if len(match[0]) == 1 and not "\u4e00" <= match[0] <= "\u9fff":
            yield match[0], place, match.end()
            continue
        for word in jieba.lcut(match[0], cut_all=False):
            if place > match.start():
                yield " ", place, place
            yield _read_word(word), place, place + len(word)
            place += len(word)


def _read_word(word: str) -> str:
    try:
        phones: str = ZHG2P.word2ipa(word)
    except ValueError:
        # One of its characters has no reading.
        return "" if len(word) == 1 else "".join(_read_word(one) for one in word)
    return phones.replace(_UNDER, "")


def _read_bopomofo(said: str, frontend: Any) -> Iterator[tuple[str, int, int]]:
    """The same from the front end of version 1.1."""
    place = 0
    for token in frontend(said)[1]:
        start = max(said.find(token.text, place), place)
        place = start + len(token.text)
        yield (token.phonemes or "").replace(frontend.unk, ""), start, place
        if token.whitespace:
            yield token.whitespace, place, place


def _write_out(text: str) -> str:
    """A text with its numbers in characters and its marks as misaki has them."""
    try:
        numbers: str = cn2an.transform(text, "an2cn")
    except ValueError:
        numbers = text
    said: str = ZHG2P.map_punctuation(numbers)
    return said


def _keep_words() -> None:
    """WHY not where jieba keeps its words by itself: in the folder for all users' temporary files,
    anyone could have put them."""
    jieba.setLogLevel(logging.WARNING)
    folder = user_cache_path("cantata") / "jieba"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        jieba.dt.tmp_dir = str(folder)


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
