"""Character times, interpolated from word times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimedCharacter:
    """When one character of a text is heard."""

    character: str
    start_s: float
    end_s: float


class CharacterClock:
    """Gives each character of one utterance its time, once, as word times arrive.

    Inside a word its characters share its time evenly; characters between two words share the
    time between them.

    Args:
        text: the utterance's.
        start_s: when its first sample is heard.
    """

    def __init__(self, text: str, start_s: float = 0.0) -> None:
        self._text = text
        self._start_s = start_s
        self._timed = 0
        """Characters with a time so far."""
        self._until_s = start_s

    def words(self, words: Iterable[tuple[int, int, float, float]]) -> list[TimedCharacter]:
        """Characters up to the last of these words.

        Args:
            words: in order, each as its first character, the one behind it, and the seconds from
                the utterance's first sample at which it begins and ends. A word that occurs
                again (a number is read as several) makes its characters no longer.
        """
        timed: list[TimedCharacter] = []
        for first, end, start_s, end_s in words:
            if end > self._timed:
                timed += self._spread(max(first, self._timed), self._start_s + start_s)
                self._until_s = max(self._until_s, self._start_s + start_s)
                timed += self._spread(end, self._start_s + end_s)
        return timed

    def rest(self, duration_s: float) -> list[TimedCharacter]:
        """Characters after the last word, and a space, since another utterance may follow.

        Nothing, if no word of the utterance had a time.

        Args:
            duration_s: of the utterance.
        """
        if not self._timed:
            return []
        end_s = max(self._until_s, self._start_s + duration_s)
        rest = list(self._spread(len(self._text), end_s))
        return [*rest, TimedCharacter(" ", self._until_s, end_s)]

    def _spread(self, end: int, end_s: float) -> Iterator[TimedCharacter]:
        """The characters up to `end`, evenly over the time up to `end_s`."""
        first, start_s = self._timed, self._until_s
        if end <= first:
            return
        end_s = max(end_s, start_s)
        step_s = (end_s - start_s) / (end - first)
        self._timed, self._until_s = end, end_s
        for place, character in enumerate(self._text[first:end]):
            yield TimedCharacter(
                character, start_s + place * step_s, start_s + (place + 1) * step_s
            )
