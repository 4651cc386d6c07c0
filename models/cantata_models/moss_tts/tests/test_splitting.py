"""Nano's parts of a text: those of the published code, and what holds for any text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantata_models.moss_tts.random_checkpoint_talker import write_sentencepiece
from cantata_models.moss_tts.splitting import split_text
from cantata_models.moss_tts.tokenizers import NanoTokenizer

GOLDENS = Path(__file__).with_name("goldens") / "splitting.json"
CASES: list[dict[str, Any]] = json.loads(GOLDENS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> NanoTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_sentencepiece(folder / "tokenizer.model")
    return NanoTokenizer(folder)


def test_parts_and_silences_are_the_published_code_s(tokenizer: NanoTokenizer) -> None:
    def count(text: str) -> int:
        return len(tokenizer.encode(text))

    for case in CASES:
        parts = split_text(case["text"], count, case["max_tokens"])
        assert [part.text for part in parts] == case["parts"], case["text"]
        assert [part.silence_before_s for part in parts] == [0.0, *case["silences_s"]]
    assert {len(case["parts"]) for case in CASES} >= {1, 2, 3, 4, 5, 6}


def test_a_text_of_one_part_is_left_as_it_is(tokenizer: NanoTokenizer) -> None:
    (part,) = split_text(" two  words\n", len, 75)
    assert part.text == " two  words\n"


def test_no_limit_keeps_a_text_whole() -> None:
    (part,) = split_text("One. Two. Three.", len, 0)
    assert (part.text, part.silence_before_s) == ("One. Two. Three.", 0.0)


@given(st.text(st.sampled_from("abéß1. ,;!?。，！？“”\"')\n\r\t你好こ한")), st.integers(1, 30))  # noqa: RUF001
def test_any_text_is_cut_into_short_parts(text: str, max_tokens: int) -> None:
    if not text.strip():
        return
    parts = split_text(text, len, max_tokens)
    if len(parts) > 1:
        # The space between two pieces is not counted before they are joined.
        assert all(0 < len(part.text) <= max_tokens + 1 for part in parts)
        assert all(part.text == part.text.strip() for part in parts)
    spoken, given = (
        "".join(whole.split()).casefold() for whole in ("".join(p.text for p in parts), text)
    )
    assert spoken in (given, f"{given}.", f"{given}。")
