"""English text to misaki's phones, each word with its place in the text.

Normalisation, part-of-speech tags, lexicon and letter-to-sound are those of the package hibari-tts
(misaki's, without spaCy and espeak-ng). What is added here: sentences and words keep their places
in the client's text, whatever a number or an abbreviation became; no part is longer than a network
reads; runs of letters, digits and marks that the package cuts, refuses or takes minutes for are
read in pieces.

Letters: T phones.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Any

from hibari.g2p import G2P
from hibari.g2p.normalize import normalize
from hibari.tts import MAX_PHONEMES, Hibari

from cantata.contract.data.request import TextSpan
from cantata_layers.misaki.phones import PHONE_MARKUP, read_phones, vocabulary
from cantata_layers.misaki.places import Places
from cantata_layers.misaki.sentences import (
    PhonemizedSentence,
    PhoneUnit,
    ends_clause,
    has_sound,
    make_sentences,
)

_AROUND = frozenset(";:,.!?…\"“”‘’()[]'")  # noqa: RUF001
_LONG_RUN = re.compile(r"[^\W\d_]{33,}|\d{16,}|\S{81,}")
_READABLE = re.compile(r"[^\W\d_]{1,32}|\d|[^\w\s]|_")
_LONGEST = 2000
"""Characters that are read at once: the time for it grows with the square."""


class EnglishG2P:
    """One accent's text front end. Loading takes half a second.

    Args:
        british: British lexicon and rules.
    """

    def __init__(self, british: bool) -> None:
        self._british = british
        self._g2p = G2P(british=british)

    def read(self, text: str) -> tuple[PhonemizedSentence, ...]:
        """The sentences of a text; none if nothing in it has a sound.

        Raises:
            InvalidRequest: a phone override with a letter that is no phone.
        """
        space = vocabulary()[" "]
        return tuple(
            sentence
            for span in _split_sentences(text)
            for sentence in make_sentences(self._read_units(text, span), space, MAX_PHONEMES)
        )

    def _read_units(self, text: str, span: TextSpan) -> Iterator[PhoneUnit]:
        place = span.start
        for match in PHONE_MARKUP.finditer(text, span.start, span.end):
            yield from self._read_words(text, TextSpan(place, match.start()))
            override = read_phones(match[1], self._british)
            space = (vocabulary()[" "],)
            yield PhoneUnit(override + space, TextSpan(match.start(), match.end()), True, False)
            place = match.end()
        yield from self._read_words(text, TextSpan(place, span.end))

    def _read_words(self, text: str, span: TextSpan) -> Iterator[PhoneUnit]:
        written = text[span.start : span.end]
        said = _LONG_RUN.sub(_loosen, _to_decimals(normalize(written)))
        places = Places(written, said)
        at = 0
        sign = -1  # where a sign begins that the next word says, such as that of a currency
        for token in self._g2p.phonemize_tokens(self._g2p.tokenize(said)):
            begin = said.find(token.text, at)
            begin = at if begin < 0 else begin
            at = begin + len(token.text)
            if not token.phonemes and not token.whitespace:
                sign = begin if sign < 0 else sign
                continue
            where = _strip(written, places.find(begin if sign < 0 else sign, at))
            sign = -1
            yield self._make_unit(token, TextSpan(span.start + where.start, span.start + where.end))

    def _make_unit(self, token: Any, span: TextSpan) -> PhoneUnit:
        said = token.phonemes or ""
        ids = vocabulary()
        phones = [ids[letter] for letter in said if letter in ids]
        if token.whitespace:
            phones.append(ids[" "])
        return PhoneUnit(tuple(phones), span, has_sound(said), ends_clause(said))


@cache
def load_g2p(british: bool) -> EnglishG2P:
    """The front end of an accent, loaded once."""
    return EnglishG2P(british)


def _strip(text: str, span: TextSpan) -> TextSpan:
    """Without the marks around it."""
    start, end = span.start, span.end
    while end - start > 1 and text[start] in _AROUND:
        start += 1
    while end - start > 1 and text[end - 1] in _AROUND:
        end -= 1
    return TextSpan(start, end)


def _loosen(run: re.Match[str]) -> str:
    """A run that is too long for the lexicon or the letter-to-sound network, with spaces in it."""
    return " ".join(_READABLE.findall(run[0]))


def _to_decimals(text: str) -> str:
    """Digits that are no decimals, such as ①, as decimals."""
    return "".join(
        f" {unicodedata.digit(c)} " if c.isdigit() and not c.isdecimal() else c for c in text
    )


def _split_sentences(text: str) -> Iterator[TextSpan]:
    place = 0
    for sentence in Hibari.split_sentences(text):
        start = text.find(sentence, place)
        place = start + len(sentence)
        while place - start > _LONGEST:
            cut = text.rfind(" ", start + _LONGEST // 2, start + _LONGEST)
            cut = start + _LONGEST if cut < 0 else cut
            yield TextSpan(start, cut)
            start = cut
        yield TextSpan(start, place)
