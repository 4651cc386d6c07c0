"""The set of names and abbreviations, and when one counts as heard."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from cantata.config.plugins import locate
from cantata_bench.lexicon_words import (
    AFTER,
    BEFORE,
    HeardWord,
    LexiconWord,
    hear_words,
    is_heard_as,
    measure,
    read_words,
    report,
)
from cantata_bench.server import running_server

MIN_HEARD = 0.9
"""Of a part of the set."""
MAX_WITHOUT = 0.3


def test_the_set_has_300_words_with_entries_that_are_not_their_letters() -> None:
    words = read_words()
    assert len({one.word for one in words}) == len(words) == 300
    same = [one for one in words if is_heard_as(one.said, f"{BEFORE} {one.word} {AFTER}")]
    assert len(same) < len(words) // 10, same
    assert len(read_words(40)) == 40


@pytest.mark.parametrize(
    ("heard", "counts"),
    [
        ("The next word is marley bone, and that is all.", True),
        ("The next word is Marleybone and that is all", True),
        ("marly bone", True),
        ("The next word is Mary Lebone, and that is all.", True),
        ("The next word is Mary, and that is all.", False),
        ("The next word is A B C, and that is all.", False),
        ("The next word is, and that is all.", False),
        ("", False),
    ],
)
def test_spaces_and_a_letter_in_four_do_not_count(heard: str, counts: bool) -> None:
    assert is_heard_as("marley bone", heard) is counts


def test_names_that_the_ears_know_are_told_apart_from_what_was_misheard() -> None:
    words = [LexiconWord("Thames", "tems"), LexiconWord("Lech", "leck"), LexiconWord("QA", "check")]
    told = ("the Thames", "like", "check")
    heard = [HeardWord(one, "clara", said, "") for one, said in zip(words, told, strict=True)]
    *missed, known, shares = report(heard)
    assert [line.split()[0] for line in missed] == ["Thames", "Lech"]
    assert known.startswith("of these, 1 ")
    assert shares == "heard as the entry says: 33.3%; without the lexicon: 0.0%"


@pytest.mark.thorough
@pytest.mark.integration
@pytest.mark.skipif(find_spec("faster_whisper") is None, reason="the ears are not installed")
def test_words_are_heard_as_their_entries_say_and_not_without(tmp_path: Path) -> None:
    options = ["--voices-dir", str(tmp_path / "voices"), "--jobs-dir", str(tmp_path / "jobs")]
    options += ["--model", locate(None).plugin.name]
    with running_server(tmp_path / "log", options=options) as server:
        heard = hear_words(server.url, read_words(40))
    with_entry, without = measure(heard)
    assert with_entry >= MIN_HEARD, list(report(heard))
    assert without <= MAX_WITHOUT, list(report(heard))
