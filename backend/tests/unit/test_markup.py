"""Pauses in text: where they are, how long they are, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantata.contract.errors import InvalidRequest
from cantata.contract.markup import (
    Passage,
    Pause,
    pause_spans,
    split_pauses,
    without_pauses,
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Hello.", [Passage("Hello.", 0)]),
        ("One[pause 1.5s]two", [Passage("One", 0), Pause(1.5), Passage("two", 15)]),
        ("[pause 500ms] Go", [Pause(0.5), Passage(" Go", 13)]),
        ("Go [PAUSE 2 S ]", [Passage("Go ", 0), Pause(2.0)]),
        ("[pause 1s] [pause .5s]", [Pause(1.0), Pause(0.5)]),
        ("a [pause 10s]\n", [Passage("a ", 0), Pause(10.0)]),
        ("He [paused] and [[P AO Z]].", [Passage("He [paused] and [[P AO Z]].", 0)]),
        ("A [note] pause 1s.", [Passage("A [note] pause 1s.", 0)]),
        ("", []),
    ],
)
def test_parts(text: str, parts: list[Passage | Pause]) -> None:
    assert split_pauses(text) == parts


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Wait [pause abc] here", r"'\[pause abc\]' at character 5 is not a pause"),
        ("[pause]", r"'\[pause\]' at character 0 is not a pause; valid are \[pause 1.5s\]"),
        ("[pause 1.5]", "is not a pause"),
        ("[pause 1,5s]", "is not a pause"),
        ("[pause -1s]", "is not a pause"),
        ("so [pause 1s and on", "at character 3 is not a pause"),
        ("[pause 0s]", "above 0 and at most 10 s"),
        ("[pause 10.1s]", "out of range"),
        ("[pause 99999999999999999999ms]", "out of range"),
    ],
)
def test_refusals_name_the_markup_and_its_place(text: str, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says) as refusal:
        split_pauses(text)
    assert refusal.value.param == "input"


@given(st.lists(st.sampled_from(["Hi. ", "[pause 1s]", "[pause 20ms]", "\n", "you"]), max_size=9))
def test_passages_keep_their_place_and_no_word_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)
    parts = split_pauses(text)
    for part in parts:
        if isinstance(part, Passage):
            assert text[part.start : part.start + len(part.text)] == part.text
    spoken = " ".join(part.text for part in parts if isinstance(part, Passage))
    assert spoken.split() == without_pauses(text).split()
    assert sum(isinstance(part, Pause) for part in parts) == len(pause_spans(text))


def test_a_pause_that_is_still_arriving_has_its_place_already() -> None:
    (span,) = pause_spans("Hello [pause 1.")
    assert (span.start, span.end) == (6, 15)
    assert pause_spans("Hello [pau") == []
