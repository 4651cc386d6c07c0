"""Answers are read as transformers and the publisher's package read them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from transformers.models.qwen3_asr import processing_qwen3_asr

from cantata_models.qwen3_asr.config import LANGUAGES, NAMES, find_name
from cantata_models.qwen3_asr.transcription_builder import (
    WrittenSpeech,
    parse_answer,
    shorten_loops,
)

PROCESSING: Any = processing_qwen3_asr


@pytest.mark.parametrize(
    ("answer", "text", "language"),
    [
        ("language English<asr_text>Good morning.", "Good morning.", "en"),
        (" language Chinese <asr_text> 早上好。\n", "早上好。", "zh"),
        ("LANGUAGE cantonese<asr_text>早晨", "早晨", "yue"),
        ("language German\nspoken\n<asr_text>Guten Tag", "Guten Tag", "de"),
        ("language None<asr_text>", "", ""),
        ("language None<asr_text>Hm.", "Hm.", ""),
        ("language Klingon<asr_text>nuqneH", "nuqneH", ""),
        ("<asr_text>One.<asr_text>Two.", "One.<asr_text>Two.", ""),
        ("The language English is known.", "The language English is known.", ""),
        ("", "", ""),
        (" \n", "", ""),
    ],
)
def test_the_language_stands_before_the_text(answer: str, text: str, language: str) -> None:
    assert parse_answer(answer) == WrittenSpeech(text, language)
    theirs = PROCESSING._parse_single_output(answer)
    assert theirs["transcription"] == text


def _looping(seed: int) -> str:
    source = random.Random(seed)
    parts = []
    for _ in range(source.randint(1, 4)):
        phrase = "".join(source.choices("ab c\n好", k=source.choice((1, 1, 2, 3, 7, 19, 20, 21))))
        parts.append(phrase * source.choice((1, 2, 18, 19, 20, 21, 22, 45)))
        parts.append("".join(source.choices("xyz .", k=source.randint(0, 45))))
    return "".join(parts)


def test_loops_are_shortened_as_by_transformers() -> None:
    for seed in range(300):
        text = _looping(seed)
        assert shorten_loops(text) == PROCESSING._detect_and_fix_repetitions(text), seed


def test_all_languages_of_transformers_are_known() -> None:
    assert dict(NAMES) == PROCESSING.LANGUAGE_CODE_TO_NAME
    assert len(LANGUAGES) == len(NAMES) == 30


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("en", "English"),
        ("en-US", "English"),
        ("ZH_hant_TW", "Chinese"),
        ("cmn", "Chinese"),
        ("yue-HK", "Cantonese"),
        ("tl", "Filipino"),
        ("eo", None),
        ("", None),
    ],
)
def test_a_tag_s_region_does_not_matter(tag: str, name: str | None) -> None:
    assert find_name(tag) == name
