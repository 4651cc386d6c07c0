"""What is read otherwise than written: the same words as without misaki, each with its place."""

from __future__ import annotations

import re
import time

import pytest

from cantata_layers.english.folding import fold
from cantata_layers.english.normalize import normalize
from cantata_layers.english.shortcuts import is_plain
from cantata_layers.english.tests.test_normalize import read_cases
from cantata_layers.english.tokens import Accent, Spoken
from cantata_layers.misaki.written import read_written

BRITISH = Accent.BRITISH
METRIC = re.compile(r"(lit|met)re")
CASES = [text for text, _ in read_cases() if "[[" not in text]


def spell_out(said: str) -> str:
    """Letters and figures alone, and two words as misaki spells them."""
    letters = "".join(filter(str.isalnum, fold(said).text.lower()))
    return letters.replace("etcetera", "etc").replace("missus", "mrs")


def test_misaki_reads_the_words_of_the_rules() -> None:
    assert len(CASES) > 1_500
    for text in CASES:
        words = [item.word for item in normalize(text) if isinstance(item, Spoken)]
        assert spell_out(read_written(text).text) == spell_out("".join(words)), text


def test_misaki_reads_the_words_of_the_british() -> None:
    for text in CASES:
        words = [item.word for item in normalize(text, BRITISH) if isinstance(item, Spoken)]
        said = METRIC.sub(r"\1er", read_written(text, BRITISH).text.lower())
        expected = METRIC.sub(r"\1er", "".join(words).lower())
        assert spell_out(said) == spell_out(expected), text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Pay £2.50 for 105, please.", "Pay two pounds fifty for one hundred and five, please."),
        ("Due 03/04/2024!", "Due the third of April twenty twenty four!"),
        ("5 dl, 2 km", "Five decilitres, two kilometres"),
        ("a parking meter", "a parking meter"),
    ],
)
def test_british_sentences(text: str, said: str) -> None:
    assert read_written(text, BRITISH).text.lower() == said.lower()


def test_what_is_plain_is_said_as_written() -> None:
    plain = [text for text in CASES if is_plain(text)]
    assert len(plain) > 50
    for text in plain:
        words = [item.word for item in normalize(text) if isinstance(item, Spoken)]
        assert spell_out(text) == spell_out("".join(words)), text


def test_every_character_has_its_place() -> None:
    for text in CASES:
        said = read_written(text)
        assert len(said.places) == len(said.named) == len(said.text)
        assert all(0 <= place.start <= place.end <= len(text) for place in said.places)
        starts = [place.start for place in said.places]
        assert starts == sorted(starts), text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Dr. Lee paid $5, twice.", "Doctor Lee paid five dollars, twice."),
        ("“Is it 7:30?” she asked.", "“Is it seven thirty?” she asked."),
        ("(COVID-19) — a 3D film", "(COVID nineteen) — a three D film"),
        ("MP3s, B2B and AT&T's", "MP threes, B two B and AT and Ts"),
        ("the '90s, 'quoted 5'", "the nineties, 'quoted five'"),
        ("well-known, state-of-the-art", "well-known, state-of-the-art"),
        ("an iPhone, IBM's, NaCl", "an iPhone, IBM's, NACL"),
        ("Plan A. A plan; so do I.", "Plan A. A plan; so do I."),
        ("Hi 👋 there • it is 東京", "Hi there, it is 東京"),
        ("snake_case, **bold** #tag", "snake case, bold hashtag tag"),
        ("etc. Then", "etc. Then"),
        ("Is it at 4 p.m.?", "Is it at four PM?"),
        ("Visit http://localhost, :) hello (yes)", "Visit localhost, hello (yes)"),
        (
            "(555) 555-0123 (A.D. 500)",
            "five five five, five five five, zero one two three (A.D. five hundred)",
        ),
        ("Call 555-0123 - now", "Call five five five, zero one two three — now"),
    ],
)
def test_marks_stay_where_they_pause(text: str, said: str) -> None:
    assert read_written(text).text == said


def test_runs_that_misaki_cannot_read_are_cut() -> None:
    assert max(map(len, read_written("Zorvathkin" * 50).text.split())) <= 32


def test_brackets_around_numbers_are_read_in_time() -> None:
    """Which grows with the length of the text, not with the square of it."""

    def cost_s(brackets: int) -> float:
        begun = time.thread_time()
        read_written("(1) " * brackets)
        return time.thread_time() - begun

    cost_s(10)
    limit_s = 12 * min(cost_s(500) for _ in range(3))
    assert any(cost_s(4_000) < limit_s for _ in range(3))
