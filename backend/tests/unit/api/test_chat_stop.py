"""Stop texts, however the answer is cut into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantata.api.chat.measured_answer import StopFilter

LETTERS = st.text("abc", max_size=30)


def passed(stops: list[str], pieces: list[str]) -> tuple[str, bool]:
    """What leaves, and whether a stop text has ended it; nothing leaves that is taken back."""
    one = StopFilter(stops)
    out = ""
    for piece in pieces:
        out += one.feed(piece)
        assert not any(stop in out for stop in stops)
    return out + one.finish(), one.stopped


def by_characters(stops: list[str], text: str) -> tuple[str, bool]:
    """The same by looking at every beginning of the text, shortest first."""
    for end in range(len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: end - max(map(len, found))], True
    return text, False


@given(st.lists(st.text("abc", min_size=1, max_size=4), max_size=4), st.lists(LETTERS, max_size=8))
def test_what_leaves_does_not_depend_on_the_pieces(stops: list[str], pieces: list[str]) -> None:
    assert passed(stops, pieces) == by_characters(stops, "".join(pieces))


@pytest.mark.parametrize(
    ("pieces", "leaving"),
    [
        (["one E", "N", "D two"], ["one ", "", ""]),
        (["one E", "x"], ["one ", "Ex"]),
        (["E", "E", "END"], ["", "E", "E"]),
        (["END", "more"], ["", ""]),
    ],
)
def test_only_what_may_begin_a_stop_text_is_held_back(
    pieces: list[str], leaving: list[str]
) -> None:
    one = StopFilter(["END"])
    assert [one.feed(piece) for piece in pieces] == leaving
