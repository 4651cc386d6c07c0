"""Text to sentences of phones: the front end's result, and how long text is split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cantata_models.solo.text.errors import TextError
from cantata_models.solo.text.normalize import normalize
from cantata_models.solo.text.phones import SIL
from cantata_models.solo.text.pronounce import pronounce
from cantata_models.solo.text.tokens import Item, Spoken, Strength

MIN_MAX_PHONES = 3
"""A sentence has a silence at each end and a phone between."""

_ACCEPTED = (
    "accepted are letters of the Latin alphabet, digits, currency and mathematical signs, and "
    "phones as in [[HH AH L OW]]"
)


@dataclass(frozen=True, slots=True)
class Word:
    """One spoken word. A number or an abbreviation gives several words with the same span."""

    text: str
    """The caller's own characters this word came from."""
    start: int
    end: int
    """Character offsets [start, end) in the caller's text."""
    phones: tuple[str, ...]
    """ARPAbet without stress, from `PHONES`."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is spoken in one go. The first three tuples have the same length."""

    phones: tuple[str, ...]
    """All words' phones, with SIL at the start, at the end and where punctuation pauses."""
    word_starts: tuple[bool, ...]
    """True on a word's first phone."""
    word_index: tuple[int, ...]
    """Index into `words` of the word a phone belongs to, -1 for SIL."""
    question: bool
    words: tuple[Word, ...]


Clause = list[Word]


def phonemize(text: str, *, max_phones: int = 200) -> tuple[Sentence, ...]:
    """Turns English text into sentences of at most `max_phones` phones (silences counted).

    Sentences split at sentence ends; those that are too long split at clause ends, then between
    words, and a single over-long word inside. Raises TextError when nothing speakable remains or a
    `[[...]]` override is invalid, and ValueError when `max_phones` is below 3.
    """
    if max_phones < MIN_MAX_PHONES:
        raise ValueError(f"max_phones is {max_phones}; it must be at least {MIN_MAX_PHONES}")
    sentences: list[Sentence] = []
    for clauses, question in _clauses_of_sentences(text):
        parts = list(_split(clauses, max_phones - 2))
        # Only the last part of a split question has the question's melody.
        for index, part in enumerate(parts):
            sentences.append(_sentence(part, question and index == len(parts) - 1))
    if not sentences:
        raise TextError(_why_silent(text))
    return tuple(sentences)


def _why_silent(text: str) -> str:
    if not text.strip():
        return f"the text is empty; {_ACCEPTED}"
    if any(char.isalpha() for char in text):
        return f"the text has only letters of scripts this voice cannot read; {_ACCEPTED}"
    return f"the text has no words, only punctuation, emoji or signs without a sound; {_ACCEPTED}"


def _clauses_of_sentences(text: str) -> Iterator[tuple[list[Clause], bool]]:
    """Yields each sentence's clauses and whether it is a question."""
    clauses: list[list[Spoken]] = [[]]
    for item in normalize(text):
        if isinstance(item, Spoken):
            clauses[-1].append(item)
        elif item.strength is Strength.CLAUSE:
            clauses.append([])
        else:
            if any(clauses):
                yield _pronounced(text, clauses), item.question
            clauses = [[]]
    if any(clauses):
        yield _pronounced(text, clauses), False


def _pronounced(text: str, clauses: Iterable[Sequence[Item]]) -> list[Clause]:
    spoken = [[item for item in clause if isinstance(item, Spoken)] for clause in clauses]
    phones = iter(pronounce([item.word for clause in spoken for item in clause]))
    return [
        [
            Word(text[item.start : item.end], item.start, item.end, item.phones or found)
            for item, found in zip(clause, phones, strict=False)
        ]
        for clause in spoken
        if clause
    ]


def _size(words: Iterable[Word]) -> int:
    return sum(len(word.phones) for word in words)


def _split(clauses: Sequence[Clause], limit: int) -> Iterator[list[Clause]]:
    """Packs clauses into parts of at most `limit` phones, a silence between clauses included."""
    part: list[Clause] = []
    size = 0
    for clause in clauses:
        for index, group in enumerate(_split_clause(clause, limit)):
            # Groups of one clause stay apart: between them there is no silence to speak.
            if part and (index > 0 or size + 1 + _size(group) > limit):
                yield part
                part, size = [], 0
            size += _size(group) + (1 if part else 0)
            part.append(group)
    if part:
        yield part


def _split_clause(clause: Clause, limit: int) -> Iterator[Clause]:
    """Splits a clause between words into groups of similar size, each within the limit."""
    words = [piece for word in clause for piece in _split_word(word, limit)]
    remaining = _size(words)
    group: Clause = []
    size, target = 0, _even_share(remaining, limit)
    for word in words:
        length = len(word.phones)
        if group and (size + length > limit or size >= target):
            yield group
            remaining -= size
            group, size, target = [], 0, _even_share(remaining, limit)
        group.append(word)
        size += length
    if group:
        yield group


def _even_share(total: int, limit: int) -> float:
    return total / max(1, -(-total // limit))


def _split_word(word: Word, limit: int) -> list[Word]:
    if len(word.phones) <= limit:
        return [word]
    starts = range(0, len(word.phones), limit)
    return [replace(word, phones=word.phones[start : start + limit]) for start in starts]


def _sentence(clauses: Sequence[Clause], question: bool) -> Sentence:
    phones: list[str] = [SIL]
    starts: list[bool] = [False]
    index: list[int] = [-1]
    words: list[Word] = []
    for clause in clauses:
        for word in clause:
            phones += word.phones
            starts += [position == 0 for position in range(len(word.phones))]
            index += [len(words)] * len(word.phones)
            words.append(word)
        phones.append(SIL)
        starts.append(False)
        index.append(-1)
    return Sentence(tuple(phones), tuple(starts), tuple(index), question, tuple(words))
