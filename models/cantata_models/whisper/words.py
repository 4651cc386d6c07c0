"""Words of a transcript: which tokens they are, and when the alignment comes to them.

Letters: T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unicodedata import category

from cantata.contract.data.transcripts import TranscribedWord
from cantata_models.whisper.checkpoint import Vocabulary

FRAME_S = 0.02
"""Seconds of sound in one row of the encoder."""
_SPACELESS = frozenset({"zh", "ja", "th", "lo", "my", "yue"})
"""Languages written without spaces: each character is a word."""
_REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class AlignedToken:
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
    """Join tokens to words. Punctuation belongs to the word before it, or if it opens what follows,
    as in `"Yes"` or `$5`, to the word after it.

    Args:
        seconds: length of the window; the last word ends there at the latest, or where the mark
            after it begins.
    """
    pieces: list[_TokenGroup] = []
    for piece in _list_pieces(tokens, vocabulary):
        if pieces and not _begins_word(piece.text, pieces[-1].text, code):
            pieces[-1] += piece
        else:
            pieces.append(piece)
    words = _join_punctuation([piece for piece in pieces if piece.text.strip()])
    if not words:
        return ()
    last = words[-1].tokens[-1]
    is_marked = len(words[-1].tokens) > 1 and not _is_spoken(vocabulary.decode([last.number]))
    ends = [word.tokens[0].start_s for word in words[1:]]
    ends.append(last.start_s if is_marked else seconds)
    return tuple(_to_word(word, min(end, seconds)) for word, end in zip(words, ends, strict=True))


@dataclass(frozen=True, slots=True)
class _TokenGroup:
    """Tokens that are whole characters."""

    text: str
    tokens: tuple[AlignedToken, ...]

    def __add__(self, other: _TokenGroup) -> _TokenGroup:
        return _TokenGroup(self.text + other.text, self.tokens + other.tokens)

    @property
    def is_spoken(self) -> bool:
        """Whether it has a letter or a digit."""
        return _is_spoken(self.text)


def _is_spoken(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _list_pieces(tokens: Sequence[AlignedToken], vocabulary: Vocabulary) -> Iterator[_TokenGroup]:
    pending: list[AlignedToken] = []
    for token in tokens:
        pending.append(token)
        text = vocabulary.decode([one.number for one in pending])
        if _REPLACEMENT not in text:
            yield _TokenGroup(text, tuple(pending))
            pending = []
    if pending:  # the text ends within a character
        yield _TokenGroup("", tuple(pending))


def _begins_word(text: str, before: str, code: str) -> bool:
    """Whether a piece is not part of the word that ends before it."""
    if text[:1].isspace():
        return True
    if code not in _SPACELESS or not text:
        return False
    if _opens(before[-1:]) or (_is_latin(before[-1:]) and _is_latin(text[:1])):
        return False
    return text[0].isalnum() or _opens(text[0])


def _opens(character: str) -> bool:
    """Whether it is an opening bracket or quotation mark."""
    return bool(character) and category(character) in ("Ps", "Pi")


def _is_latin(character: str) -> bool:
    """Whether it is part of words that spaceless languages, too, write in several letters."""
    return character.isascii() and character.isalnum()


def _join_punctuation(pieces: Sequence[_TokenGroup]) -> list[_TokenGroup]:
    """Join what is not spoken to the word before it, or the first one to the word after it."""
    words: list[_TokenGroup] = []
    for piece in pieces:
        if words and not (piece.is_spoken and words[-1].is_spoken):
            words[-1] += piece
        else:
            words.append(piece)
    return words


def _to_word(word: _TokenGroup, end_s: float) -> TranscribedWord:
    probability = sum(token.probability for token in word.tokens) / len(word.tokens)
    start_s = min(word.tokens[0].start_s, end_s)
    numbers = tuple(token.number for token in word.tokens)
    text = word.text.strip()
    return TranscribedWord(text, round(start_s, 2), round(end_s, 2), probability, numbers)
