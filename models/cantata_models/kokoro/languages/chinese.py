"""Mandarin Chinese, by misaki: IPA with arrows for tones, or, for checkpoints of version 1.1,
bopomofo."""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Iterator
from typing import Any

from platformdirs import user_cache_path

from cantata_layers.misaki.places import CHARACTER, Places
from cantata_models.kokoro.languages.said import SaidPart

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
    """Implements `SentenceG2P`.

    Args:
        bopomofo: as checkpoints of version 1.1; it takes four seconds to load, otherwise one.
    """

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
