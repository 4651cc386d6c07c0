"""How a text with several speakers is cut, and how much of what was said a prompt keeps."""

from __future__ import annotations

import numpy as np
import pytest

from cantata_models.fish_speech.prompt import SpokenBefore
from cantata_models.fish_speech.prompt_rows import latest
from cantata_models.fish_speech.turns import DEFAULT_BYTES, grouped

A, B = "<|speaker:0|>", "<|speaker:1|>"


@pytest.mark.parametrize(
    ("text", "max_bytes", "groups"),
    [
        ("No tags at all, however long. " * 20, 5, 1),
        (f"{A}Hi.", 1, 1),
        (f"{A}Hi.{B}Yes?", 31, 2),
        (f"{A}Hi.{B}Yes?", 33, 1),
        (f"{A}\u00e9\u00e9\u00e9.{B}Yes?", 36, 2),  # bytes, not characters
        (f"{A}Hi.{B}Yes?" * 3, DEFAULT_BYTES, 2),  # five turns, then one
        (f"Before. {A}Hi. {B}Yes?", 1, 3),
        (f"{A}{B}Hi.{A}...{B}", 1, 1),  # the silent turns have no group
        (f"{A}Hi.{A}...{B}Yes?{A}", 1, 2),
    ],
)
def test_groups_have_so_many_turns_and_bytes(text: str, max_bytes: int, groups: int) -> None:
    found = grouped(text.strip(), max_bytes)
    assert len(found) == groups
    assert "".join(found).replace(" ", "") == text.replace(" ", "")
    assert all(group == group.strip() for group in found)
    assert all(any(c.isalnum() for c in g.replace(A, "").replace(B, "")) for g in found)


def test_a_group_ends_before_it_has_too_much() -> None:
    turns = [f"{speaker}{'x' * count}" for speaker, count in ((A, 60), (B, 60), (A, 60), (B, 200))]
    assert grouped("".join(turns), DEFAULT_BYTES) == ("".join(turns[:2]), turns[2], turns[3])


def spoken(positions: int) -> SpokenBefore:
    return SpokenBefore((1, 2), np.zeros((positions - 3, 10), np.int32), (3,))


@pytest.mark.parametrize(
    ("room", "frames", "kept"),
    [
        (400, 100, 3),  # all of 3 x 100
        (399, 100, 2),
        (300, 100, 2),
        (299, 100, 1),
        (200, 1023, 1),  # half of the room, whatever the limit
        (198, 1023, 0),
        (10, 1, 0),
        (-50, 100, 0),  # no room at all: the talker says so
    ],
)
def test_the_latest_turns_are_kept(room: int, frames: int, kept: int) -> None:
    turns = [spoken(100) for _ in range(3)]
    assert list(map(id, latest(turns, room, frames))) == list(map(id, turns[3 - kept :]))
