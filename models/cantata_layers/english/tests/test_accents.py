"""What Americans and the British read differently, against `accents.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cantata_layers.english.normalize import normalize
from cantata_layers.english.tests.test_normalize import TABLES, read_cases, shown
from cantata_layers.english.tokens import Accent, Spoken

TABLE = Path(__file__).with_name("accents.txt")
ROWS = [
    line.split(" => ")
    for line in TABLE.read_text(encoding="utf-8").splitlines()
    if " => " in line and not line.startswith("# ")
]
CASES = [
    (written, accent, said)
    for written, *both in ROWS
    for accent, said in zip((Accent.AMERICAN, Accent.BRITISH), both, strict=True)
]


@pytest.mark.parametrize(("text", "accent", "said"), CASES)
def test_an_accent_says_what_the_table_has(text: str, accent: Accent, said: str) -> None:
    assert " ".join(map(shown, normalize(text, accent))) == said


def test_table_has_both_kinds() -> None:
    assert len(ROWS) >= 40
    assert TABLE not in TABLES
    assert {american == british for _, american, british in ROWS} == {True, False}


def test_words_of_one_accent_alone_are_not_left_in_the_other() -> None:
    for text, _ in read_cases():
        for accent in Accent:
            words = [item for item in normalize(text, accent) if isinstance(item, Spoken)]
            assert all(word.accent in (None, accent) for word in words)
            ends = [(word.start, word.end) for word in words]
            assert ends == sorted(ends), text
