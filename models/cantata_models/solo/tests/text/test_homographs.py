"""Homographs in sentences, against the table in `homographs.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cantata_models.solo.text import phonemize
from cantata_models.solo.text.homographs import HOMOGRAPHS

TABLE = Path(__file__).with_name("homographs.txt")


def read_cases() -> list[tuple[str, str, str]]:
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if " => " in line]
    cases = [line.split(" => ") for line in lines if not line.startswith("#")]
    return [(text, *said.split(" ", 1)) for text, said in cases]  # type: ignore[misc]


@pytest.mark.parametrize(("text", "word", "phones"), read_cases())
def test_the_words_around_a_homograph_tell_how_it_is_said(
    text: str, word: str, phones: str
) -> None:
    words = [spoken for sentence in phonemize(text) for spoken in sentence.words]
    said = next(spoken.phones for spoken in words if spoken.text.lower() == word)
    assert " ".join(said) == phones


def test_most_homographs_are_tried_both_ways() -> None:
    said: dict[str, set[str]] = {}
    for _, word, phones in read_cases():
        said.setdefault(word, set()).add(phones)
    tried = {word for word, found in said.items() if len(found) > 1}
    assert len(tried & set(HOMOGRAPHS)) >= 40
