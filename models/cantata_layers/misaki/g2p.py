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
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from hibari.g2p import G2P
from hibari.g2p.normalize import normalize
from hibari.tts import MAX_PHONEMES, Hibari

from cantata.contract.data.request import TextSpan
from cantata_layers.misaki.phones import PHONE_MARKUP, read_phones, vocabulary

_MARKS = frozenset(';:,.!?—…"“”()')
"""Phones without a sound of their own."""
_CLAUSE_END = frozenset(",;:—.!?")
_CHUNK = re.compile(r"\S+")
_AROUND = frozenset(";:,.!?…\"“”‘’()[]'")  # noqa: RUF001
_LONG_RUN = re.compile(r"[^\W\d_]{33,}|\d{16,}|\S{81,}")
_READABLE = re.compile(r"[^\W\d_]{1,32}|\d|[^\w\s]|_")
_LONGEST = 2000
"""Characters that are read at once: the time for it grows with the square."""
_PAD = 0


@dataclass(frozen=True, slots=True)
class PhonemizedWord:
    """A word and its sound."""

    span: TextSpan
    """In the client's text."""
    start: int
    """Its first phone."""
    end: int
    """The phone after its last."""


@dataclass(frozen=True, slots=True)
class PhonemizedSentence:
    """What the network reads at once."""

    phones: tuple[int, ...]
    """[T] ids, with the padding at both ends."""
    words: tuple[PhonemizedWord, ...]


@dataclass(frozen=True, slots=True)
class _Unit:
    """A token: a word with the space after it, or a mark."""

    phones: tuple[int, ...]
    span: TextSpan
    is_word: bool
    ends_clause: bool


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
        made: list[PhonemizedSentence] = []
        for span in _split_sentences(text):
            units = list(self._read_units(text, span))
            made += [_join(part) for part in _cut(units) if any(unit.is_word for unit in part)]
        return tuple(made)

    def _read_units(self, text: str, span: TextSpan) -> Iterator[_Unit]:
        place = span.start
        for match in PHONE_MARKUP.finditer(text, span.start, span.end):
            yield from self._read_words(text, TextSpan(place, match.start()))
            override = read_phones(match[1], self._british)
            space = (vocabulary()[" "],)
            yield _Unit(override + space, TextSpan(match.start(), match.end()), True, False)
            place = match.end()
        yield from self._read_words(text, TextSpan(place, span.end))

    def _read_words(self, text: str, span: TextSpan) -> Iterator[_Unit]:
        written = text[span.start : span.end]
        said = _LONG_RUN.sub(_loosen, _to_decimals(normalize(written)))
        places = _Places(written, said)
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

    def _make_unit(self, token: Any, span: TextSpan) -> _Unit:
        said = token.phonemes or ""
        ids = vocabulary()
        phones = [ids[letter] for letter in said if letter in ids]
        if token.whitespace:
            phones.append(ids[" "])
        is_word = any(letter not in _MARKS and not letter.isspace() for letter in said)
        return _Unit(tuple(phones), span, is_word, bool(said) and said[-1] in _CLAUSE_END)


@cache
def load_g2p(british: bool) -> EnglishG2P:
    """The front end of an accent, loaded once."""
    return EnglishG2P(british)


class _Places:
    """Where the characters of a normalised sentence come from.

    Between two spaces, what normalisation left as it was keeps its place to the character, and what
    it replaced has that of everything that it replaced.
    """

    def __init__(self, written: str, said: str) -> None:
        ours, theirs = list(_CHUNK.finditer(written)), list(_CHUNK.finditer(said))
        matcher = SequenceMatcher(
            None, [chunk[0] for chunk in ours], [chunk[0] for chunk in theirs], autojunk=False
        )
        self._kept: list[tuple[int, int, int]] = []
        self._replaced: list[tuple[int, int, TextSpan]] = []
        for kind, a, b, c, d in matcher.get_opcodes():
            for index in range(c, d):
                start, end = theirs[index].span()
                if kind == "equal":
                    self._kept.append((start, end, ours[a + index - c].start() - start))
                elif ours:
                    source = ours[a:b] or ours[max(a - 1, 0) : max(a, 1)]
                    span = TextSpan(source[0].start(), source[-1].end())
                    self._replaced.append((start, end, span))

    def find(self, start: int, end: int) -> TextSpan:
        """The source of characters [start, end)."""
        found = [span for first, last, span in self._replaced if first < end and last > start]
        for first, last, shift in self._kept:
            if first < end and last > start:
                found.append(TextSpan(max(first, start) + shift, min(last, end) + shift))
        if not found:
            return TextSpan(0, 0)
        return TextSpan(min(span.start for span in found), max(span.end for span in found))


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


def _cut(units: list[_Unit]) -> Iterator[list[_Unit]]:
    """Parts that the network can read: at the last end of a clause, or else between two words."""
    part: list[_Unit] = []
    length = 0
    for unit in units:
        for phones in _pieces_of(unit.phones):
            if length + len(phones) > MAX_PHONEMES:
                ends = [n for n, earlier in enumerate(part, 1) if earlier.ends_clause]
                cut = ends[-1] if ends and ends[-1] < len(part) else len(part)
                yield part[:cut]
                part = part[cut:]
                length = sum(len(earlier.phones) for earlier in part)
                if length + len(phones) > MAX_PHONEMES:
                    yield part
                    part, length = [], 0
            part.append(_Unit(phones, unit.span, unit.is_word, unit.ends_clause))
            length += len(phones)
    if part:
        yield part


def _pieces_of(phones: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Of a word; more than one only if the word alone is longer than the network reads."""
    for begin in range(0, max(len(phones), 1), MAX_PHONEMES):
        yield phones[begin : begin + MAX_PHONEMES]


def _join(units: list[_Unit]) -> PhonemizedSentence:
    phones, words = [_PAD], list[PhonemizedWord]()
    space = vocabulary()[" "]
    for unit in units:
        if unit.is_word:
            heard = len(unit.phones) - (unit.phones[-1] == space)
            words.append(PhonemizedWord(unit.span, len(phones), len(phones) + heard))
        phones += unit.phones
    while phones[-1] == space:
        phones.pop()
    return PhonemizedSentence((*phones, _PAD), tuple(words))
