"""Word times in the form that clients get."""

from __future__ import annotations

from collections.abc import Iterable

from cantata.api.schemas import TimedWord
from cantata.contract.service import SpokenWord


def timed_words(words: Iterable[SpokenWord], text: str, offset: int = 0) -> list[TimedWord]:
    """The wire's form of an utterance's words.

    Args:
        words: with offsets into `text`.
        text: the utterance's.
        offset: its position in the client's text.
    """
    return [
        TimedWord(
            text=text[word.text_start : word.text_end],
            start=round(word.start_s, 3),
            end=round(word.end_s, 3),
            text_start=offset + word.text_start,
            text_end=offset + word.text_end,
        )
        for word in words
    ]
