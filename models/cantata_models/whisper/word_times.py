"""Words of a transcript, from the alignment of its tokens with the sound.

Letters: T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cantata.contract.data.transcripts import TranscribedWord
from cantata_models.whisper.vocabulary import Vocabulary

FRAME_S = 0.02
"""Seconds of sound in one row of the encoder."""
_SPACELESS = frozenset({"zh", "ja", "th", "lo", "my", "yue"})
"""Languages written without spaces: each character is a word."""
_REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class AlignedToken:
    """One token of a transcript."""

    number: int
    start_s: float
    """Seconds from the window's start; the next token's start is its end."""
    probability: float


def align_tokens(
    tokens: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    probabilities: Sequence[float],
) -> list[AlignedToken]:
    """Times of tokens.

    Args:
        tokens: [T].
        pairs: number of a token and row of the encoder, along the best path.
        probabilities: [T].
    """
    rows: dict[int, int] = {}
    for number, row in pairs:
        rows.setdefault(number, row)
    last = 0
    aligned = []
    for number, token in enumerate(tokens):
        last = max(last, rows.get(number, last))
        aligned.append(AlignedToken(token, last * FRAME_S, probabilities[number]))
    return aligned


def join_words(
    tokens: Sequence[AlignedToken], vocabulary: Vocabulary, code: str, seconds: float
) -> tuple[TranscribedWord, ...]:
    """Join tokens to words; punctuation belongs to the word before it.

    Args:
        tokens: of a window's text.
        vocabulary: of the model.
        code: of the language.
        seconds: length of the window; the last word ends there at the latest.
    """
    groups: list[list[AlignedToken]] = []
    texts: list[str] = []
    pending: list[AlignedToken] = []
    for token in tokens:
        pending.append(token)
        text = vocabulary.decode([one.number for one in pending])
        if _REPLACEMENT in text:
            continue  # a part of a character
        if groups and not _begins_word(text, code):
            groups[-1] += pending
            texts[-1] += text
        else:
            groups.append(pending)
            texts.append(text)
        pending = []
    if pending and groups:
        groups[-1] += pending
    if not groups:
        return ()
    ends = [group[0].start_s for group in groups[1:]] + [seconds]
    return tuple(
        _to_word(text, group, min(end, seconds))
        for text, group, end in zip(texts, groups, ends, strict=True)
        if text.strip()
    )


def _begins_word(text: str, code: str) -> bool:
    bare = text.strip()
    if not any(character.isalnum() for character in bare):
        return False
    return code in _SPACELESS or text[:1].isspace()


def _to_word(text: str, tokens: Sequence[AlignedToken], end_s: float) -> TranscribedWord:
    probability = sum(token.probability for token in tokens) / len(tokens)
    start_s = min(tokens[0].start_s, end_s)
    numbers = tuple(token.number for token in tokens)
    return TranscribedWord(text.strip(), round(start_s, 2), round(end_s, 2), probability, numbers)
