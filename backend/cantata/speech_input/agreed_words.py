"""The words of an utterance that are certain while it is still spoken: those on which two
transcripts in a row agree (LocalAgreement-2, arXiv:2005.11185)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from cantata.contract.data.languages import SPACELESS, choose_separator
from cantata.contract.data.transcripts import TokenLogprob, Transcript

_WORD = re.compile(rf"\s*(?:[{SPACELESS}]|[^\s{SPACELESS}]+)")
_MARKS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class WordDelta:
    """More words, as they follow the earlier ones."""

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()
    """Logarithms of the tokens' probabilities; empty: unknown."""


class AgreedWords:
    """Follows the transcripts of one utterance, window by window."""

    def __init__(self) -> None:
        self._said = 0
        """Words of the present window that were passed on."""
        self._before: list[str] = []
        """Words of the transcript before."""
        self._passed_on = ""
        """The last text that was."""

    def take(self, transcript: Transcript, is_last: bool) -> WordDelta | None:
        """The words that have become certain, if any. `is_last`: nothing about this window will
        change; the next transcript is of another."""
        words = _WORD.findall(transcript.text)
        certain = len(words) if is_last else self._count_agreed(words)
        first, self._before = self._said, words
        self._said = max(first, certain)
        if is_last:
            self._said, self._before = 0, []
        if certain <= first:
            return None
        text = "".join(words[first:certain])
        start = len("".join(words[:first]))
        logprobs = _select_tokens(transcript, start, start + len(text))
        if first == 0:
            text = choose_separator(self._passed_on, text, transcript.language) + text
        self._passed_on = text
        return WordDelta(text, logprobs)

    def _count_agreed(self, words: Sequence[str]) -> int:
        """Words at the beginning that are the same as before. The last one may go on."""
        pairs = zip(words[:-1], self._before, strict=False)
        return sum(
            1 for _ in takewhile(lambda pair: _strip_marks(pair[0]) == _strip_marks(pair[1]), pairs)
        )


def _strip_marks(word: str) -> str:
    """The word without marks, which change when more words follow."""
    return _MARKS.sub("", word).casefold() or word.strip()


def _select_tokens(transcript: Transcript, start: int, end: int) -> tuple[TokenLogprob, ...]:
    """The tokens that begin between these characters of the text."""
    found, place = [], -_count_spaces_before(transcript)
    for token in transcript.logprobs:
        if start <= max(0, place) < end:
            found.append(token)
        place += len(token.text)
    return tuple(found)


def _count_spaces_before(transcript: Transcript) -> int:
    """Characters of the tokens before the text, from which they were stripped."""
    text = "".join(token.text for token in transcript.logprobs)
    return len(text) - len(text.lstrip())
