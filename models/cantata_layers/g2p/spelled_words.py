# ruff: noqa: RUF001 (signs that look alike are what this file is about)
"""Texts to phones in languages that are read by their spelling: words, numbers, signs, marks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from cantata_layers.g2p.letter_rules import STRESS
from cantata_layers.g2p.said_parts import SaidPart

_LETTER = "[^\\W\\d_]"
_MARK = "\u0300-\u036f\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963"
"""Accents and signs of vowels, which are characters of their own."""
_TOKEN = re.compile(
    r"(?P<number>\d+(?:[.,\u00a0\u202f]\d+)*)(?P<ordinal>[ºª°])?"
    rf"|(?P<word>{_LETTER}(?:{_LETTER}|[{_MARK}]|['’](?={_LETTER}))*(?:['’](?!{_LETTER}))?\.?)"
    r"|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
_ROMAN = re.compile("(?=[IVX]{2})X{0,3}(IX|IV|V?I{0,3})")
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10}
_MARKS = {**{mark: mark for mark in ";:,.!?—…“”()"}, '"': '"', "«": "“", "»": "”", "–": "—"}
_MAX_DIGITS = 15
"""Of a number that is read as one."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a language is read by its spelling."""

    count: Callable[[int, bool], str]
    """A number as words; with True, as an ordinal."""
    say_word: Callable[[str], str]
    """The phones of a word in small letters, as it is said alone; of a consonant, its name."""
    weak: Mapping[str, str]
    """Words without a stress of their own in a sentence, and their phones there."""
    comma: str
    """In a number."""
    minus: str
    """Before a number."""
    signs: Mapping[str, str]
    """Words for `%`, `€` and the like."""
    short: Mapping[str, str] = field(default_factory=dict)
    """Abbreviations in small letters, with their point, and the words that they stand for."""
    thousands: str = "."
    """Between the digits of a number; what is not that, `.` or `,`, is before decimals."""
    reads_latin: bool = True
    """Whether words in Latin letters are its own."""
    vowels: str = "aeiouáéíóúàèìòùâêôãõy"
    link: Callable[[str, str], tuple[str, str]] = lambda before, after: (before, after)
    """What two words become next to each other; the second is empty at the end of a phrase."""


class SpelledG2P:
    """Implements `SentenceG2P` for one language."""

    def __init__(self, spelling: Spelling) -> None:
        self._spelling = spelling
        self.reads_latin = spelling.reads_latin

    def read(self, text: str) -> list[SaidPart]:
        """A sentence without markup, part by part; together the phones, spaces and marks of it."""
        parts = list[SaidPart]()
        spoken = -1
        """Place of the last word, if only a space is behind it."""
        for phones, start, end in self._read_tokens(text):
            if phones.isspace():
                if not parts or not parts[-1].phones.isspace():
                    parts.append(SaidPart(" ", start, start))
                continue
            if phones in _MARKS.values():
                self._end_phrase(parts, spoken)
                parts.append(SaidPart(phones, start, end))
                spoken = -1
                continue
            said = phones
            if spoken >= 0:
                one = parts[spoken]
                before, said = self._spelling.link(one.phones, phones)
                parts[spoken] = SaidPart(before, one.start, one.end)
                if not parts[-1].phones.isspace():
                    parts.append(SaidPart(" ", start, start))
            spoken = len(parts)
            parts.append(SaidPart(said, start, end))
        self._end_phrase(parts, spoken)
        return parts

    def _end_phrase(self, parts: list[SaidPart], spoken: int) -> None:
        """Say the last word of a phrase as it is said before nothing."""
        if spoken >= 0:
            last = parts[spoken]
            parts[spoken] = SaidPart(self._spelling.link(last.phones, "")[0], last.start, last.end)

    def _read_tokens(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Phones of each word, a mark, or a space."""
        for match in _TOKEN.finditer(text):
            start, end = match.span()
            if match["space"]:
                yield " ", start, end
            elif match["word"]:
                yield from self._read_word(match["word"], start, end)
            elif match["number"]:
                yield from self._say_all(self._count(match, text), start, end)
            elif match["other"] in self._spelling.signs and not self._is_in_number(match, text):
                yield from self._say_all(self._spelling.signs[match["other"]], start, end)
            elif match["other"] in _MARKS and not self._is_in_number(match, text):
                yield _MARKS[match["other"]], start, end
            elif not match["other"].isalnum() and match["other"] not in "¿¡*_'’`":
                yield " ", start, end

    @staticmethod
    def _is_in_number(match: re.Match[str], text: str) -> bool:
        """Whether a mark is that of a time, a date or a score, such as 15:30."""
        around = (
            text[max(match.start() - 1, 0) : match.start()] + text[match.end() : match.end() + 1]
        )
        return len(around) == 2 and around.isdigit()

    def _read_word(self, written: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        word = unicodedata.normalize("NFC", written).replace("’", "'")
        plain = word.removesuffix(".")
        whole = self._spelling.short.get(word.lower())
        if whole is not None:
            yield from self._say_all(whole, start, end)
            return
        end -= len(word) - len(plain)
        whole = self._spelling.short.get(plain.lower())
        if whole is not None:
            yield from self._say_all(whole, start, end)
        elif _ROMAN.fullmatch(plain):
            yield from self._say_all(self._say_number(str(_read_roman(plain)), False), start, end)
        elif len(plain) < 2 or self._has_vowel(plain.lower()):
            yield self._say_elided(plain.lower()), start, end
        else:
            for index, letter in enumerate(plain.lower()):
                if index:
                    yield " ", start, start
                yield self._spelling.say_word(letter), start, end
        if word.endswith("."):
            yield ".", end, end + 1

    def _has_vowel(self, word: str) -> bool:
        vowels = self._spelling.vowels
        return not vowels or any(letter in vowels for letter in word)

    def _say_elided(self, word: str) -> str:
        """One word, or several that apostrophes join."""
        *first, last = word.strip("'").split("'")
        said = [self._say_weak(part) for part in first if part]
        return "".join(said) + self._say_one(last)

    def _say_one(self, word: str) -> str:
        return self._spelling.weak.get(word) or self._spelling.say_word(word)

    def _say_weak(self, word: str) -> str:
        elided = self._spelling.weak.get(f"{word}'")
        if elided is not None:
            return elided
        if len(word) == 1 and word not in self._spelling.vowels:
            return self._spelling.say_word(f"{word}a").partition(STRESS)[0]
        return self._say_one(word).replace(STRESS, "")

    def _say_all(self, words: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        for index, word in enumerate(
            re.findall(rf"{_LETTER}(?:{_LETTER}|[{_MARK}])*", words.lower())
        ):
            if index:
                yield " ", start, start
            yield self._say_one(word), start, end

    def _count(self, match: re.Match[str], text: str) -> str:
        number, is_ordinal = match["number"], match["ordinal"] in ("º", "ª")
        point = "." if self._spelling.thousands == "," else ","
        gap = f"[{self._spelling.thousands}\u00a0\u202f]"
        found = re.fullmatch(
            rf"(\d{{1,3}}(?:{gap}\d{{2,3}})*{gap}\d{{3}})(?:[{point}](\d+))?", number
        ) or re.fullmatch(r"(\d+)(?:[.,](\d+))?", number)
        if found is None:
            return " ".join(self._say_number(part, False) for part in re.findall(r"\d+", number))
        said = self._say_number("".join(re.findall(r"\d", found[1])), is_ordinal)
        if found[2]:
            zeros = len(found[2]) - len(found[2].lstrip("0"))
            rest = [self._say_number("0", False)] * zeros
            if found[2].lstrip("0"):
                rest.append(self._say_number(found[2][zeros:], False))
            said = " ".join((said, self._spelling.comma, *rest))
        before = text[: match.start()]
        is_negative = before[-1:] in ("-", "−") and not before[-2:-1].strip()
        return f"{self._spelling.minus} {said}" if is_negative else said

    def _say_number(self, digits: str, is_ordinal: bool) -> str:
        count = self._spelling.count
        if len(digits) > _MAX_DIGITS or (len(digits) > 2 and int(digits[0]) == 0):
            return " ".join(count(int(digit), False) for digit in digits)
        return count(int(digits), is_ordinal and len(digits) < 4)


def count_in(language: str) -> Callable[[int, bool], str]:
    """Numbers as words, or where asked as ordinals, by num2words' name of a language."""

    def count(number: int, is_ordinal: bool) -> str:
        # Its tables of languages take a tenth of a second.
        from num2words import num2words

        return str(num2words(number, lang=language, to="ordinal" if is_ordinal else "cardinal"))

    return count


def _read_roman(written: str) -> int:
    values = [_ROMAN_DIGITS[letter] for letter in written]
    following = [*values[1:], 0]
    return sum(-one if one < after else one for one, after in zip(values, following, strict=True))


def weaken(phones: str) -> str:
    """A word as it is said without a stress of its own: longer ones keep a weaker stress."""
    syllables = sum(phone in "aeiouɛɔæyʊɐAIWO" for phone in phones)
    return phones.replace(STRESS, "ˌ" if syllables > 1 else "")
