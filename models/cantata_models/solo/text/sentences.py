"""Converts text to sentences of phones, splitting sentences that are too long."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from cantata_models.solo.text.errors import TextError, WordlessText
from cantata_models.solo.text.normalize import normalize
from cantata_models.solo.text.phones import SIL
from cantata_models.solo.text.pronounce import pronounce
from cantata_models.solo.text.result import Clause, Sentence, Word
from cantata_models.solo.text.splitting import split
from cantata_models.solo.text.tokens import Item, Spoken, Strength

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
    for clauses, question in _clauses_of_sentences(text):
        parts = list(split(clauses, max_phones - 2))
        # Only the last part of a split question has question intonation.
        for index, part in enumerate(parts):
            sentences.append(_sentence(part, question and index == len(parts) - 1))
    if not sentences:
        raise _why_silent(text)
    return tuple(sentences)


def _why_silent(text: str) -> TextError:
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


def _sentence(clauses: Sequence[Clause], question: bool) -> Sentence:
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
