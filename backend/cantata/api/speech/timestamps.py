"""Word times in the form that clients get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cantata.api.schemas import TimedMark, TimedWord
from cantata.contract.service import SpokenWord
from cantata.text import find_marks


def to_timed_words(words: Iterable[SpokenWord], text: str, offset: int = 0) -> list[TimedWord]:
    """The wire's form of an utterance's words.

    Args:
        words: with offsets into `text`.
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


class MarkClock:
    """Finds out when the marks of an utterance's text are reached.

    A mark's time is the beginning of the word that follows; the end of the word before it, if a
    pause comes between; the end of the utterance, if no word follows.

    Args:
        offset: its position in the client's text.
    """

    def __init__(self, text: str, offset: int = 0) -> None:
        self._marks, self._offset = find_marks(text), offset
        self._last_s = 0.0

    def take_until(self, words: Sequence[SpokenWord]) -> list[TimedMark]:
        due: list[TimedMark] = []
        for word in words:
            while self._marks and self._marks[0].place < word.text_end:
                time_s = self._last_s if self._marks[0].before_pause else word.start_s
                due.append(self._take(time_s))
            self._last_s = word.end_s
        return due

    def take_rest(self, duration_s: float) -> list[TimedMark]:
        """Take the marks behind the last word of an utterance of this length."""
        return [
            self._take(self._last_s if self._marks[0].before_pause else duration_s)
            for _ in range(len(self._marks))
        ]

    def _take(self, time_s: float) -> TimedMark:
        mark = self._marks.pop(0)
        return TimedMark(
            name=mark.name, time=round(time_s, 3), text_start=self._offset + mark.place
        )
