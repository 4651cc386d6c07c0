"""Converts text to sentences of phones, splitting sentences that are too long.

The parts have similar sizes. A cut is made at a nearby clause end, else before a conjunction, else
between words. It falls inside a number or after "the" only as a last resort."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cantata_layers.english.normalize import normalize
from cantata_layers.english.tokens import Item, Spoken, Strength, word_set
from cantata_models.solo.text.overrides import override_phones
from cantata_models.solo.text.pronounce import pronounce
from cantata_models.solo.text.tokens import (
    SIL,
    Clause,
    Sentence,
    TextError,
    Word,
    WordlessText,
)

_CONJUNCTIONS = word_set(
    "and but or nor so yet because although though while whereas when where which who that if "
    "unless until since before after as than"
)
_TIED = word_set(
    "the a an of to in on at by for with from and or but my your his her its our their this that "
    "these those no not is are was were be been will would can could should mr. mrs. ms. dr."
)
"""A pause after one of these sounds wrong."""

# The cost of a cut. Missing the target size by the whole limit costs 1.
_CLAUSE_COST, _CONJUNCTION_COST, _WORD_COST, _TIED_COST = 0.0, 0.35, 0.9, 1.3


@dataclass(frozen=True, slots=True)
class _Unit:
    """A word, and whether a pause follows it in the sentence."""

    word: Word
    pauses: bool

    @property
    def size(self) -> int:
        return len(self.word.phones) + self.pauses


def split(clauses: Sequence[Clause], limit: int) -> Iterator[list[Clause]]:
    """Yields parts of at most `limit` phones, including a silence between clauses."""
    units = [unit for clause in clauses for unit in _cut_units(clause, limit)]
    remaining = sum(unit.size for unit in units)
    start = 0
    # The pause after a part's last word does not count: the end is silent anyway.
    while remaining - units[-1].pauses > limit:
        end = _find_best_end(units, start, limit, remaining)
        yield _build_clauses(units[start:end])
        remaining -= sum(unit.size for unit in units[start:end])
        start = end
    yield _build_clauses(units[start:])


def _cut_units(clause: Clause, limit: int) -> list[_Unit]:
    words = [piece for word in clause for piece in _split_word(word, limit)]
    return [_Unit(word, place == len(words) - 1) for place, word in enumerate(words)]


def _split_word(word: Word, limit: int) -> list[Word]:
    if len(word.phones) <= limit:
        return [word]
    starts = range(0, len(word.phones), limit)
    return [replace(word, phones=word.phones[start : start + limit]) for start in starts]


def _find_best_end(units: Sequence[_Unit], start: int, limit: int, remaining: int) -> int:
    """Returns the end of the part that starts at `start`, at least one word later."""
    target = remaining / math.ceil(remaining / limit)
    best, best_cost = start + 1, math.inf
    size = 0
    for place in range(start, len(units) - 1):
        size += units[place].size
        if size - units[place].pauses > limit:
            break
        cost = _cut_cost(units[place], units[place + 1]) + abs(size - target) / limit
        if cost < best_cost:
            best, best_cost = place + 1, cost
    return best


def _cut_cost(unit: _Unit, following: _Unit) -> float:
    if unit.pauses:
        return _CLAUSE_COST
    before, after = unit.word, following.word
    if (before.start, before.end) == (after.start, after.end) or before.text.lower() in _TIED:
        return _TIED_COST
    return _CONJUNCTION_COST if after.text.lower() in _CONJUNCTIONS else _WORD_COST


def _build_clauses(units: Sequence[_Unit]) -> list[Clause]:
    clauses: list[Clause] = [[]]
    for place, unit in enumerate(units):
        clauses[-1].append(unit.word)
        if unit.pauses and place < len(units) - 1:
            clauses.append([])
    return clauses


MAX_PHONES = 135
"""About 12 s of speech: the teachers say 11 to 13 phones per second, pauses included."""

MIN_MAX_PHONES = 3
"""A sentence has a silence at each end and at least one phone between."""

_ACCEPTED = (
    "accepted are letters of the Latin alphabet, digits, currency and mathematical signs, and "
    "phones as in [[K AE T]] or [[/kæt/]]"
)


def phonemize(text: str, *, max_phones: int = MAX_PHONES) -> tuple[Sentence, ...]:
    """Turns English text into sentences of at most `max_phones` phones (silences counted).

    Text splits at sentence ends. `splitting` splits a sentence that is too long, first at clause
    ends, and as a last resort inside a single over-long word. Every word has the span of `text`
    that it came from (see `Word`). Letters of non-Latin scripts are not spoken, except single Greek
    letters, which are read by name (see `folding`). Raises TextError if nothing speakable remains
    (WordlessText if no letter was left out) or a `[[...]]` override is invalid, and ValueError if
    `max_phones` is below 3.
    """
    if max_phones < MIN_MAX_PHONES:
        raise ValueError(f"max_phones is {max_phones}; it must be at least {MIN_MAX_PHONES}")
    sentences: list[Sentence] = []
    for clauses, question in _iterate_sentences(text):
        parts = list(split(clauses, max_phones - 2))
        # Only the last part of a split question has question intonation.
        for index, part in enumerate(parts):
            sentences.append(_build_sentence(part, question and index == len(parts) - 1))
    if not sentences:
        raise _explain_silence(text)
    return tuple(sentences)


def _explain_silence(text: str) -> TextError:
    if not text.strip():
        return WordlessText(f"the text is empty; {_ACCEPTED}")
    if any(char.isalpha() and not _is_latin(char) for char in text):
        return TextError(
            f"the text has only letters of scripts this voice cannot read; {_ACCEPTED}"
        )
    return WordlessText(
        f"the text has no words, only punctuation, emoji or signs without a sound; {_ACCEPTED}"
    )


def _is_latin(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(("LATIN ", "FULLWIDTH LATIN "))


def _iterate_sentences(text: str) -> Iterator[tuple[list[Clause], bool]]:
    """Yields each sentence's clauses and whether it is a question."""
    clauses: list[list[Spoken]] = [[]]
    for item in normalize(text):
        if isinstance(item, Spoken):
            clauses[-1].append(item)
        elif item.strength is Strength.CLAUSE:
            clauses.append([])
        else:
            if any(clauses):
                yield _pronounce(text, clauses), item.question
            clauses = [[]]
    if any(clauses):
        yield _pronounce(text, clauses), False


def _pronounce(text: str, clauses: Iterable[Sequence[Item]]) -> list[Clause]:
    spoken = [[item for item in clause if isinstance(item, Spoken)] for clause in clauses]
    phones = iter(pronounce([item.word for clause in spoken for item in clause]))
    return [
        [
            Word(text[item.start : item.end], item.start, item.end, _choose(item, found))
            for item, found in zip(clause, phones, strict=False)
        ]
        for clause in spoken
        if clause
    ]


def _choose(item: Spoken, found: tuple[str, ...]) -> tuple[str, ...]:
    """The caller's own phones, or those that were found for the word."""
    return found if item.phones is None else override_phones(item.phones)


def _build_sentence(clauses: Sequence[Clause], question: bool) -> Sentence:
    phones: list[str] = [SIL]
    starts: list[bool] = [False]
    words: list[Word] = []
    for clause in clauses:
        for word in clause:
            phones += word.phones
            starts += [position == 0 for position in range(len(word.phones))]
            words.append(word)
        phones.append(SIL)
        starts.append(False)
    return Sentence(tuple(phones), tuple(starts), question, tuple(words))
