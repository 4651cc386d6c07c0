"""Prompt layouts, written out."""

from __future__ import annotations

from dataclasses import replace

from cantata_models.qwen3_tts.config import Qwen3TtsCodecIds, Qwen3TtsTextIds
from cantata_models.qwen3_tts.prompt import (
    FIRST_REFERENCE_FRAME,
    NONE,
    SPEAKER,
    PromptRows,
    Qwen3TtsPromptBuilder,
    Qwen3TtsSpokenText,
)

CODEC = Qwen3TtsCodecIds(
    pad=100, bos=101, eos=102, think=106, nothink=107, think_bos=108, think_eos=109
)
TEXT = Qwen3TtsTextIds(pad=71, bos=72, eos=73)
SPOKEN = Qwen3TtsSpokenText(role=(1, 2, 3), body=(10, 11, 12))
ENGLISH, VIVIAN = 50, 60


def build(spoken: Qwen3TtsSpokenText = SPOKEN, **changes: object) -> PromptRows:
    options: dict[str, object] = {
        "language": None,
        "speaker": None,
        "reference_frames": 0,
        "streamed": False,
    }
    return Qwen3TtsPromptBuilder(CODEC, TEXT).build(spoken, **{**options, **changes})  # type: ignore[arg-type]


def pairs(rows: PromptRows) -> list[tuple[int, int]]:
    return list(zip(rows.text, rows.codes, strict=True))


ROLE = [(1, NONE), (2, NONE), (3, NONE)]


def test_whole_text_without_language_or_speaker() -> None:
    rows = build()
    assert pairs(rows) == [
        *ROLE,
        *[(71, 107), (71, 108), (71, 109), (72, 100)],
        *[(10, 100), (11, 100), (12, 100), (73, 100), (71, 101)],
        (71, NONE),
    ]
    assert rows.prompt_len == len(rows.text) - 1


def test_streamed_text_with_language_and_speaker() -> None:
    rows = build(language=ENGLISH, speaker=VIVIAN, streamed=True)
    assert pairs(rows) == [
        *ROLE,
        *[(71, 106), (71, 108), (71, ENGLISH), (71, 109), (71, VIVIAN), (72, 100)],
        *[(10, 101), (11, NONE), (12, NONE), (73, NONE), (71, NONE)],
    ]
    assert rows.prompt_len == 3 + 6 + 1


def test_an_instruction_stands_first() -> None:
    rows = build(replace(SPOKEN, instruction=(5, 6)))
    assert pairs(rows)[:5] == [(5, NONE), (6, NONE), *ROLE]


def test_a_continued_recording_with_all_text_before_it() -> None:
    rows = build(replace(SPOKEN, reference=(8, 9)), speaker=SPEAKER, reference_frames=2)
    frames = [FIRST_REFERENCE_FRAME, FIRST_REFERENCE_FRAME - 1]
    assert pairs(rows)[7:] == [
        (72, 100),
        *[(8, 100), (9, 100), (10, 100), (11, 100), (12, 100), (73, 100)],
        *[(71, 101), (71, frames[0]), (71, frames[1])],
        (71, NONE),
    ]
    assert SPEAKER in rows.codes


def test_a_continued_recording_that_is_shorter_than_the_text() -> None:
    rows = build(replace(SPOKEN, reference=(8, 9)), reference_frames=2, streamed=True)
    assert pairs(rows)[7:] == [
        *[(8, 101), (9, FIRST_REFERENCE_FRAME), (10, FIRST_REFERENCE_FRAME - 1)],
        *[(11, NONE), (12, NONE), (73, NONE), (71, NONE)],
    ]
    assert rows.prompt_len == 10


def test_a_continued_recording_that_is_longer_than_the_text() -> None:
    rows = build(replace(SPOKEN, reference=(8,)), reference_frames=7, streamed=True)
    assert rows.text[7:] == [8, 10, 11, 12, 73, 71, 71, 71, 71]
    assert rows.prompt_len == len(rows.text) - 1


def test_open_text_has_no_end_and_later_rows_bring_it() -> None:
    builder = Qwen3TtsPromptBuilder(CODEC, TEXT)
    rows = build(replace(SPOKEN, complete=False), streamed=True)
    assert pairs(rows)[-2:] == [(11, NONE), (12, NONE)]
    assert pairs(builder.text_rows((13, 14), complete=False)) == [(13, NONE), (14, NONE)]
    assert builder.text_rows((15,), complete=True).text == [15, 73, 71]
