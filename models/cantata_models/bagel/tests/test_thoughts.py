"""Thoughts as their readers see them: in words, while they are thought, without marks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantata.contract.data.chat import Thought
from cantata_models.bagel.prompt import BagelTokenizer
from cantata_models.bagel.random_checkpoint import write_checkpoint
from cantata_models.bagel.tests.parity.scenarios import SEED
from cantata_models.bagel.thought_text import BagelThoughtReader, ThoughtSplitter


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> BagelTokenizer:
    return BagelTokenizer(write_checkpoint(tmp_path_factory.mktemp("checkpoint"), SEED))


def read(texts: BagelTokenizer, *segments: str) -> tuple[str, list[str]]:
    """All of it, and what left with each piece."""
    reader = BagelThoughtReader(texts.tokenizer)
    left = [reader.read(np.array(texts.tokens(piece)[1:-1], np.int32)) for piece in segments]
    return "".join(left) + reader.end(), left


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<think>\nA red cube.\nOn a table.\n</think>\n", "A red cube.\nOn a table."),
        ("  <think> a</think>", "a"),
        ("no marks at all", "no marks at all"),
        ("a < b, </thin", "a < b, </thin"),
        ("<think>a</think> and b</think>", "a\nand b</think>"),
        ("b <think>c</think>", "b <think>c</think>"),
        ("<think></think>", ""),
        ("  ", ""),
        ("<thi", "<thi"),
    ],
)
def test_marks_are_not_shown(texts: BagelTokenizer, written: str, shown: str) -> None:
    assert read(texts, written)[0] == shown


@given(st.lists(st.sampled_from(["<think>", "</think>", " ", "<", "/think>", "a", "\n", "b c"])))
def test_a_thought_is_the_same_however_it_is_cut(
    texts: BagelTokenizer, segments: list[str]
) -> None:
    assert read(texts, *segments)[0] == read(texts, "".join(segments))[0]


def test_words_leave_while_they_are_thought(texts: BagelTokenizer) -> None:
    assert read(texts, "<think>", "A red", " cube", ".", "\n</thi", "nk>")[1] == [
        *("", "A red", " cube", ".", "", "")
    ]


def split(*segments: str) -> tuple[str, str]:
    """The thought and the words of an answer that comes in pieces."""
    splitter = ThoughtSplitter()
    told = [one for piece in segments for one in splitter.read(piece)]
    told += splitter.end()
    thought = "".join(one.text for one in told if isinstance(one, Thought))
    return thought, "".join(one for one in told if isinstance(one, str))


@pytest.mark.parametrize(
    ("written", "thought", "words"),
    [
        (
            "<think> Two.\nOr three. </think>\n\nThree of them.\n",
            "Two.\nOr three.",
            "Three of them.\n",
        ),
        ("Three.", "", "Three."),
        ("<think>It was cut", "It was cut", ""),
        ("<think>a</think>", "a", ""),
        ("<thin", "", "<thin"),
    ],
)
def test_an_answers_thought_is_told_from_its_words(written: str, thought: str, words: str) -> None:
    assert split(written) == split(*written) == (thought, words)


def test_tokens_count_for_the_thought_until_it_ends() -> None:
    splitter = ThoughtSplitter()
    states = []
    for piece in ("<th", "ink>", "a", "</think>", " ", "b"):
        splitter.read(piece)
        states.append(splitter.thinking)
    assert states == [None, True, True, False, False, False]
