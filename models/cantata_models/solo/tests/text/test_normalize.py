"""Normalisation against the table in `normalization.txt`, and the span of every word."""

from __future__ import annotations

from pathlib import Path

import pytest

from cantata_models.solo.text.normalize import normalize
from cantata_models.solo.text.tokens import Item, Spoken, Strength

TABLE = Path(__file__).with_name("normalization.txt")


def read_cases() -> list[tuple[str, str]]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    cases = [line.split(" => ") for line in lines if " => " in line and not line.startswith("# ")]
    return [
        (text.replace("\\n", "\n").replace("\\u0301", "\u0301"), said.strip())
        for text, said in cases
    ]


def shown(item: Item) -> str:
    if isinstance(item, Spoken):
        return item.word
    if item.strength is Strength.CLAUSE:
        return ","
    return "?" if item.question else "."


@pytest.mark.parametrize(("text", "said"), read_cases())
def test_text_is_said_as_the_table_has_it(text: str, said: str) -> None:
    assert " ".join(map(shown, normalize(text))) == said


def test_table_is_large() -> None:
    assert len(read_cases()) >= 400


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("Pay $3.50 now", ["Pay", "$3.50", "$3.50", "$3.50", "$3.50", "$3.50", "now"]),
        ("Dr. Lee's cat", ["Dr.", "Lee's", "cat"]),
        ("see a.com", ["see", "a", ".", "com"]),
        ("a MP3 file", ["a", "M", "P", "3", "file"]),
        ("OpenAI works", ["Open", "A", "I", "works"]),
        ("cafe\u0301 noir", ["cafe\u0301", "noir"]),
        ("3½ cups", ["3½", "3½", "3½", "3½", "cups"]),
        ("😀 ﬁne", ["ﬁne"]),
        ("\u200bhello\u200b world", ["hello", "world"]),
        ("Straße 5", ["Straße", "5"]),
        ("well-known", ["well", "known"]),
        ("Henry VIII's wife", ["Henry", "VIII's", "VIII's", "wife"]),
    ],
)
def test_spans_are_the_callers_characters(text: str, spans: list[str]) -> None:
    words = [item for item in normalize(text) if isinstance(item, Spoken)]
    assert [text[word.start : word.end] for word in words] == spans
