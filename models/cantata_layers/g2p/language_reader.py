"""Texts of one language, with phones in double brackets between, to what the network reads."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import TextSpan
from cantata_layers.g2p.said_parts import Alphabet, SaidPart, SentenceG2P, merge_words
from cantata_layers.misaki.g2p import load_g2p
from cantata_layers.misaki.phones import PHONE_MARKUP, vocabulary
from cantata_layers.misaki.sentence_spans import cut_span
from cantata_layers.misaki.sentences import (
    PhonemizedSentence,
    PhoneUnit,
    ends_clause,
    has_sound,
    make_sentences,
)

MAX_MARKS = 3
"""Behind one word of phones; more change nothing."""
COMFORTABLE = 400
"""Phones that the network speaks at once without haste."""
_STRESS = "ˈˌː"
_MAX_CHARACTERS = 400
"""Characters that are read at once."""
_SENTENCE_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*(?=\s+[^\sa-zß-ÿ])|[。！？｡]+[”’」』）)】]*|[।॥]|\n+"  # noqa: RUF001
)
_ABBREVIATIONS = frozenset(("Dr", "Dra", "Prof", "Sig", "Sr", "Sra", "Srta", "St", "Ud", "Uds"))
"""Behind which a point ends no sentence."""
_LATIN = re.compile(
    "[A-Za-zＡ-Ｚａ-ｚÀ-ÖØ-öø-ɏ]+(?:[ '’&-]+[A-Za-zＡ-Ｚａ-ｚÀ-ÖØ-öø-ɏ]+)*"  # noqa: RUF001
)


class LanguageReader:
    """Reads texts of one language. `max_phones`: phones that are spoken at once."""

    def __init__(self, g2p: SentenceG2P, alphabet: Alphabet, max_phones: int = COMFORTABLE) -> None:
        self._g2p = g2p
        self._alphabet = alphabet
        self._max_phones = min(max_phones, alphabet.max_phones)
        self._space = alphabet.vocabulary[" "]

    def read(self, text: str) -> list[PhonemizedSentence]:
        """The sentences of a text; none if nothing in it has a sound. Raises InvalidRequest: a
        phone override that cannot be spoken."""
        return [
            sentence
            for span in split_sentences(text)
            for sentence in make_sentences(
                self._read_units(text, span), self._space, self._max_phones
            )
        ]

    def _read_units(self, text: str, span: TextSpan) -> Iterator[PhoneUnit]:
        """Without a space at the beginning or behind another, and without runs of marks."""
        spaced, marks = True, 0
        for unit in self._read_pieces(text, span):
            kept = list[int]()
            for phone in unit.phones:
                is_space = phone == self._space
                marks = 0 if unit.is_word else marks + (not is_space)
                if not (spaced if is_space else marks > MAX_MARKS):
                    kept.append(phone)
                    spaced = is_space
            yield PhoneUnit(tuple(kept), unit.span, unit.is_word, unit.ends_clause)

    def _read_pieces(self, text: str, span: TextSpan) -> Iterator[PhoneUnit]:
        place = span.start
        for match in PHONE_MARKUP.finditer(text, span.start, span.end):
            yield from self._read_words(text, TextSpan(place, match.start()))
            yield self._make_space(match.start())
            override = spell_phones(match[1], self._alphabet)
            yield PhoneUnit(tuple(override), TextSpan(*match.span()), True, False)
            place = match.end()
            if place < span.end and text[place].isalnum():
                yield self._make_space(place)
        yield from self._read_words(text, TextSpan(place, span.end))

    def _read_words(self, text: str, span: TextSpan) -> Iterator[PhoneUnit]:
        place = span.start
        for match in () if self._g2p.reads_latin else _LATIN.finditer(text, span.start, span.end):
            yield from self._read_own(text, TextSpan(place, match.start()))
            yield self._make_space(match.start())
            yield from self._make_units(read_english(match[0]), match.start())
            yield self._make_space(match.end())
            place = match.end()
        yield from self._read_own(text, TextSpan(place, span.end))

    def _read_own(self, text: str, span: TextSpan) -> Iterator[PhoneUnit]:
        # A front end takes time that grows with the square.
        for part in cut_span(text, span, _MAX_CHARACTERS):
            yield from self._make_units(self._g2p.read(text[part.start : part.end]), part.start)

    def _make_units(self, parts: Iterable[SaidPart], offset: int) -> Iterator[PhoneUnit]:
        ids = self._alphabet.vocabulary
        for part in merge_words(parts):
            kept = [letter for letter in part.phones if letter in ids]
            yield PhoneUnit(
                tuple(ids[letter] for letter in kept),
                TextSpan(offset + part.start, offset + part.end),
                has_sound("".join(kept)),
                ends_clause(part.phones),
            )

    def _make_space(self, place: int) -> PhoneUnit:
        return PhoneUnit((self._space,), TextSpan(place, place), False, False)


def split_sentences(text: str) -> Iterator[TextSpan]:
    """The sentences of a text; phones in double brackets are not cut."""
    plain = PHONE_MARKUP.sub(lambda match: "X" * len(match[0]), text)
    start = 0
    for match in _SENTENCE_END.finditer(plain):
        if plain[start : match.start()].rpartition(" ")[2] not in _ABBREVIATIONS:
            yield TextSpan(start, match.end())
            start = match.end()
    yield TextSpan(start, len(text))


def read_english(text: str) -> list[SaidPart]:
    """English words in a text of another language, as an American says them."""
    letters = {number: letter for letter, number in vocabulary().items()}
    made = list[SaidPart]()
    for sentence in load_g2p(british=False).read(unicodedata.normalize("NFKC", text)):
        phones = "".join(letters.get(phone, "") for phone in sentence.phones[1:-1])
        for word in sentence.words:
            # One behind, for the padding; the words have spaces between them.
            said = phones[word.start - 1 : word.end - 1]
            made += [
                SaidPart(" ", word.span.start, word.span.start),
                SaidPart(said, word.span.start, word.span.end),
            ]
    return made


def spell_phones(written: str, alphabet: Alphabet) -> list[int]:
    """The ids of one override's phones. Raises InvalidRequest: a letter is no phone, there are
    none, or too many."""
    letters = " ".join(written.split())
    unknown = [letter for letter in letters if letter not in alphabet.vocabulary]
    max_phones = alphabet.max_phones - MAX_MARKS
    problem = None
    if unknown:
        problem = f"{unknown[0]!r} is no phone of this checkpoint's vocabulary"
    elif not any(letter.isalpha() and letter not in _STRESS for letter in letters):
        problem = "there are no phones"
    elif len(letters) > max_phones:
        problem = f"{len(letters)} phones at once; at most {max_phones}"
    if problem:
        raise InvalidRequest(f"[[{written[:40]}]]: {problem}", "input")
    return [alphabet.vocabulary[letter] for letter in letters]
