"""English text to misaki's phones, each word with its place in the text.

Part-of-speech tags and lexicon are those of the package hibari-tts (misaki's, without spaCy and
espeak-ng). What is added here: numbers, signs, units and abbreviations are read by the rules of
`cantata_layers.english`, not by the package's own; words that no lexicon has by `letter_to_sound`;
sentences and words keep their places in the client's text, whatever became of them; no part is
longer than a network reads; runs of letters, digits and marks that the package cuts, refuses or
takes minutes for are read in pieces.

Letters: T phones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from cantata.contract.data.request import TextSpan
from cantata_layers.english.tokens import Accent
from cantata_layers.misaki.letter_to_sound import load_letter_reader
from cantata_layers.misaki.package import find_assets, load_package_g2p
from cantata_layers.misaki.phones import PHONE_MARKUP, read_phones, vocabulary
from cantata_layers.misaki.sentence_spans import split_sentences
from cantata_layers.misaki.sentences import (
    PhonemizedSentence,
    PhoneUnit,
    ends_clause,
    has_sound,
    make_sentences,
)
from cantata_layers.misaki.written import SaidText, read_written

_PACKAGE = load_package_g2p()
_AROUND = frozenset(";:,.!?…\"“”‘’()[]'")  # noqa: RUF001
_UNSTRESSED = frozenset(("point", "oh"))
"""Inside a number."""
_MAX_WORD = 200
"""Phones of the words of one number or address that are one word to a listener."""
MAX_PHONES = 400
"""Of a part, as in the package: what the networks were trained on."""


class EnglishG2P:
    """One accent's text front end. Loading takes half a second. `british`: British lexicon, numbers
    and dates."""

    def __init__(self, british: bool) -> None:
        self._british = british
        self._accent = Accent.BRITISH if british else Accent.AMERICAN
        self._g2p = _PACKAGE.G2P(self._read_unknown, british=british)
        if british:
            self._g2p.lexicon.golds.d["Z"] = "zˈɛd"  # noqa: RUF001 (the package says zee)

    def read(self, text: str) -> tuple[PhonemizedSentence, ...]:
        """The sentences of a text; none if nothing in it has a sound. Raises InvalidRequest: a
        phone override with a letter that is no phone."""
        space = vocabulary()[" "]
        return tuple(
            sentence
            for span in split_sentences(text)
            for sentence in make_sentences(self._read_units(text, span), space, MAX_PHONES)
        )

    def _read_unknown(self, word: str) -> str:
        # The package's network spells out what cannot be said, such as "vllm".
        return load_letter_reader(self._british)(word) or _load_network(self._british)(word) or ""

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
        said = read_written(written, self._accent)
        at = 0
        unit: PhoneUnit | None = None
        for token in self._g2p.phonemize_tokens(list(self._tokenize(said))):
            begin = said.text.find(token.text, at)
            begin = at if begin < 0 else begin
            at = begin + len(token.text)
            if not token.phonemes and not token.whitespace:
                continue
            where = _strip(written, said.find(begin, at))
            new = self._make_unit(token, TextSpan(span.start + where.start, span.start + where.end))
            if unit is not None and _share_place(unit, new):
                unit = _join(unit, new)
                continue
            if unit is not None:
                yield unit
            unit = new
        if unit is not None:
            yield unit

    def _tokenize(self, said: SaidText) -> Iterator[Any]:
        """misaki's tokens; letters that are read by name have their phones."""
        at = 0
        for token in self._g2p.tokenize(said.text):
            begin = said.text.find(token.text, at)
            at = begin + len(token.text)
            if begin >= 0 and said.named[begin]:
                token.phonemes = self._name_letters(token.text)
            elif begin >= 0 and token.text in _UNSTRESSED and said.is_replaced(begin):
                token.stress = -2
            yield token

    def _name_letters(self, text: str) -> str:
        """The phones of letters by name, perhaps in the plural and with a mark after them."""
        letters = text.rstrip("s.,;:!?")
        phones: str = self._g2p.lexicon.get_NNP(letters)[0]
        rest = text[len(letters) :]
        return f"{self._g2p.lexicon._s(phones)}{rest[1:]}" if rest[:1] == "s" else phones + rest

    def _make_unit(self, token: Any, span: TextSpan) -> PhoneUnit:
        said = token.phonemes or ""
        ids = vocabulary()
        phones = [ids[letter] for letter in said if letter in ids]
        if token.whitespace:
            phones.append(ids[" "])
        return PhoneUnit(tuple(phones), span, has_sound(said), ends_clause(said))


def _share_place(unit: PhoneUnit, new: PhoneUnit) -> bool:
    """Whether two words are parts of one, such as those of a number."""
    both = unit.is_word and new.is_word
    length = len(unit.phones) + len(new.phones)
    return both and unit.span == new.span and length <= _MAX_WORD


def _join(unit: PhoneUnit, new: PhoneUnit) -> PhoneUnit:
    return PhoneUnit(unit.phones + new.phones, unit.span, True, new.ends_clause)


@cache
def _load_network(british: bool) -> Callable[[str], str | None]:
    file = find_assets() / ("oov_gb.onnx" if british else "oov.onnx")
    network: Callable[[str], str | None] = load_package_g2p("oov").OOV(str(file))
    return network


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
