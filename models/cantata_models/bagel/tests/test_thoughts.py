"""Thoughts as their readers see them: in words, while they are thought, without marks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantata_models.bagel.prompts import Texts
from cantata_models.bagel.random_checkpoint.write import write_checkpoint
from cantata_models.bagel.tests.parity.scenarios import SEED
from cantata_models.bagel.thought_text import ThoughtReader


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Texts:
    return Texts(write_checkpoint(tmp_path_factory.mktemp("checkpoint"), SEED))


def read(texts: Texts, *pieces: str) -> tuple[str, list[str]]:
    """All of it, and what left with each piece."""
    reader = ThoughtReader(texts.tokenizer)
    left = [reader.read(np.array(texts.tokens(piece)[1:-1], np.int32)) for piece in pieces]
    return "".join(left) + reader.end(), left


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<think>\nA red cube.\nOn a table.\n</think>\n", "A red cube.\nOn a table."),
        ("  <think> a</think>", "a"),
        ("no marks at all", "no marks at all"),
        ("a < b, </thin", "a < b, </thin"),
        ("<think>a</think> and b</think>", "a and b"),
        ("<think></think>", ""),
        ("  ", ""),
        ("<thi", "<thi"),
    ],
)
def test_marks_are_not_shown(texts: Texts, written: str, shown: str) -> None:
    assert read(texts, written)[0] == shown


@given(st.lists(st.sampled_from(["<think>", "</think>", " ", "<", "/think>", "a", "\n", "b c"])))
def test_a_thought_is_the_same_however_it_is_cut(texts: Texts, pieces: list[str]) -> None:
    assert read(texts, *pieces)[0] == read(texts, "".join(pieces))[0]


def test_words_leave_while_they_are_thought(texts: Texts) -> None:
    assert read(texts, "<think>", "A red", " cube", ".", "\n</thi", "nk>")[1] == [
        *("", "A red", " cube", ".", "", "")
    ]
