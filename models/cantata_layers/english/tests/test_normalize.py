# ruff: noqa: RUF001 (characters that look alike are meant)
"""Normalization against `normalization.txt` and `everyday/`, and the span of every word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cantata_layers.english.normalize import normalize
from cantata_layers.english.tokens import Item, Spoken, Strength

_ESCAPE = re.compile(r"\\{2}|\\n|\\u[0-9a-f]{4}")
_FOLDER = Path(__file__).parent
TABLES = (_FOLDER / "normalization.txt", *sorted((_FOLDER / "everyday").glob("*.txt")))


def read_cases() -> list[tuple[str, str]]:
    lines = [line for table in TABLES for line in table.read_text(encoding="utf-8").splitlines()]
    cases = [line.split(" => ") for line in lines if " => " in line and not line.startswith("# ")]
    return [(_ESCAPE.sub(_unescaped, text), said.strip()) for text, said in cases]


def _unescaped(match: re.Match[str]) -> str:
    if match[0] == "\\\\":
        return "\\"
    return "\n" if match[0] == r"\n" else chr(int(match[0][2:], 16))


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
    assert len(read_cases()) >= 1350


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
        ("Ｈｉ ５㎏ now", ["Ｈｉ", "５㎏", "５㎏", "now"]),
        ("a㎆oat", ["a", "㎆oat", "㎆oat"]),
        ("[[həˈloʊ]] é", ["[[həˈloʊ]]", "é"]),
        ("soft\u00adly 👩‍👩‍👧 so", ["soft\u00adly", "so"]),
        ("1️⃣ ok", ["1️⃣", "ok"]),
        ("Tokyo (東京) $5", ["Tokyo", "$5", "$5"]),
        ("Henry VIII's wife", ["Henry", "VIII's", "VIII's", "wife"]),
    ],
)
def test_spans_are_the_callers_characters(text: str, spans: list[str]) -> None:
    words = [item for item in normalize(text) if isinstance(item, Spoken)]
    assert [text[word.start : word.end] for word in words] == spans
