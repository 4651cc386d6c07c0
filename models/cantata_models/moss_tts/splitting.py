"""Cuts a long text into parts for MOSS-TTS-Nano, which imitates a speaker for one part at a time.

The rules are those of the published model: parts end behind sentences, in a long sentence behind
clauses, and in a long clause between words; neighbours share a part while it stays short enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

SENTENCE_ENDS = frozenset(".!?。！？；;")  # noqa: RUF001
CLAUSE_ENDS = frozenset(",，、；;：:")  # noqa: RUF001
CLOSING = frozenset("\"'”’)]}）】》」』")  # noqa: RUF001
"""Quotes and brackets that stay with the mark before them."""
WORD_ENDS = CLAUSE_ENDS | SENTENCE_ENDS | {" "}
WORD_WINDOW = 24
"""Characters before a forced cut in which the end of a word is looked for."""
CJK = (("\u4e00", "\u9fff"), ("\u3400", "\u4dbf"), ("\u3040", "\u30ff"), ("\uac00", "\ud7af"))
"""Chinese characters, kana and Hangul syllables."""
SHORT_WORDS = 4
SHORT_SILENCE_S = 0.40
LONG_SILENCE_S = 0.24

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class MossTextPart:
    """A piece of text that is spoken in one go."""

    text: str
    silence_before_s: float
    """Seconds of silence between the part before and this one."""


def split_text(text: str, count: CountTokens, max_tokens: int) -> tuple[MossTextPart, ...]:
    """Cut a text into parts.

    Args:
        text: to be spoken; not blank.
        count: the number of tokens of a text.
        max_tokens: of one part; 0 keeps the text whole.

    Returns:
        The parts in order. A text that fits into one part is left as it is; only the parts of a
        longer one have their spaces, first letter and end put right.
    """
    whole = (MossTextPart(text, 0.0),)
    if max_tokens == 0:
        return whole
    texts = list(
        _merge_pieces(_iterate_pieces(_prepare_text(text), count, max_tokens), count, max_tokens)
    )
    if len(texts) < 2:
        return whole
    silences = [0.0, *(_choose_silence(part) for part in texts[:-1])]
    return tuple(MossTextPart(part, silence) for part, silence in zip(texts, silences, strict=True))


def _choose_silence(text: str) -> float:
    """Return the seconds of silence behind a part: more after a short one."""
    return SHORT_SILENCE_S if len(text.split()) <= SHORT_WORDS else LONG_SILENCE_S


def _prepare_text(text: str) -> str:
    """Return a text on one line, with an end and, in most scripts, a capital at its beginning."""
    text = text.strip().replace("\n", " ").replace("\r", " ")
    while "  " in text:
        text = text.replace("  ", " ")
    if _has_cjk(text):
        return text if text[-1] in SENTENCE_ENDS else f"{text}。"
    if not text[0].isupper():
        text = text[0].upper() + text[1:]
    return f"{text}." if text[-1].isalnum() else text


def _iterate_pieces(text: str, count: CountTokens, max_tokens: int) -> Iterator[str]:
    """Yield pieces of at most so many tokens: sentences, else clauses, else words."""
    for sentence in _cut_behind(text, SENTENCE_ENDS):
        if count(sentence) <= max_tokens:
            yield sentence
            continue
        for clause in _cut_behind(sentence, CLAUSE_ENDS):
            if count(clause) <= max_tokens:
                yield clause
            else:
                yield from _cut_by_tokens(clause, count, max_tokens)


def _cut_behind(text: str, marks: frozenset[str]) -> Iterator[str]:
    """Yield the pieces of a text that end with one of these marks, and the rest."""
    start = index = 0
    while index < len(text):
        index += 1
        if text[index - 1] not in marks:
            continue
        while index < len(text) and text[index] in CLOSING:
            index += 1
        yield text[start:index].strip()
        start = index
    if rest := text[start:].strip():
        yield rest


def _cut_by_tokens(text: str, count: CountTokens, max_tokens: int) -> Iterator[str]:
    while count(text) > max_tokens:
        cut = _find_word_end(text[: _measure_longest(text, count, max_tokens)])
        yield text[:cut].strip()
        text = text[cut:].strip()
    if text:
        yield text


def _measure_longest(text: str, count: CountTokens, max_tokens: int) -> int:
    """Return the length of the longest prefix of at most so many tokens, at least 1.

    WHY not `bisect`: a longer prefix may have fewer tokens, so the places that are tried matter.
    """
    low, high, longest = 1, len(text), 1
    while low <= high:
        middle = (low + high) // 2
        if count(text[:middle].strip()) <= max_tokens:
            longest, low = middle, middle + 1
        else:
            high = middle - 1
    return longest


def _find_word_end(prefix: str) -> int:
    """Return where to cut a prefix: behind its last word if that ends near, else at its end."""
    for index in range(len(prefix), max(0, len(prefix) - WORD_WINDOW), -1):
        if prefix[index - 1] in WORD_ENDS:
            return index
    return len(prefix)


def _merge_pieces(pieces: Iterator[str], count: CountTokens, max_tokens: int) -> Iterator[str]:
    """Yield neighbouring pieces as one while their tokens together are few enough."""
    part = ""
    for piece in pieces:
        if part and count(part) + count(piece) > max_tokens:
            yield part
            part = piece
        elif part:
            part += piece if _has_cjk(part) or _has_cjk(piece) else f" {piece}"
        else:
            part = piece
    if part:
        yield part


def _has_cjk(text: str) -> bool:
    return any(low <= character <= high for character in text for low, high in CJK)
