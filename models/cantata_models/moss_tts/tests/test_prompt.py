"""Prompt layouts, written out."""

from __future__ import annotations

import numpy as np
import pytest

from cantata_models.moss_tts.config import TokenIds
from cantata_models.moss_tts.prompt import (
    Fields,
    Gap,
    MossMode,
    MossPrompt,
    MossPromptBuilder,
    joined,
)

TOKENS = TokenIds(im_start=1, im_end=2, audio_start=3, audio_end=4, user_slot=5, assistant_slot=6)
PAD = 64
FIRST_WORD = 100


class PieceTokenizer:
    """One token per piece of text, in the order of their first appearance."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def template(self, text: str) -> tuple[int, ...]:
        return self.encode(text)

    def encode(self, text: str) -> tuple[int, ...]:
        if text not in self.pieces:
            self.pieces.append(text)
        return (FIRST_WORD + self.pieces.index(text),)


@pytest.fixture
def tokenizer() -> PieceTokenizer:
    return PieceTokenizer()


@pytest.fixture
def prompts(tokenizer: PieceTokenizer) -> MossPromptBuilder:
    return MossPromptBuilder(TOKENS, tokenizer)


NO_FIELDS = (
    "\n- Instruction:\nNone\n- Tokens:\nNone\n- Quality:\nNone\n- Sound Event:\nNone"
    "\n- Ambient Sound:\nNone\n- Language:\nNone\n- Text:\n"
)
BEGIN = ["<1>", "user\n", "<user_inst>\n- Reference(s):\n"]
END = ["\n</user_inst>", "<2>", "\n", "<1>", "assistant\n", "<3>"]


def shown(prompt: MossPrompt, tokenizer: PieceTokenizer) -> list[str]:
    """Pieces of text, <special tokens> and {gaps}."""
    spelled = [
        tokenizer.pieces[index - FIRST_WORD] if index >= FIRST_WORD else f"<{index}>"
        for index in prompt.ids
    ]
    for gap in reversed(prompt.gaps):
        spelled.insert(gap.position, f"{{{gap.slot}}}")
    return spelled


def test_a_text_alone(prompts: MossPromptBuilder, tokenizer: PieceTokenizer) -> None:
    prompt = prompts.build("Hi.", MossMode.PLAIN)
    assert shown(prompt, tokenizer) == [*BEGIN, "None", NO_FIELDS, "Hi.", *END]


def test_a_clone(prompts: MossPromptBuilder, tokenizer: PieceTokenizer) -> None:
    prompt = prompts.build("Hi.", MossMode.CLONE)
    assert shown(prompt, tokenizer) == [*BEGIN, "<3>", "{5}", "<4>", NO_FIELDS, "Hi.", *END]


def test_a_clone_of_two_recordings(prompts: MossPromptBuilder, tokenizer: PieceTokenizer) -> None:
    prompt = prompts.build("Hi.", MossMode.CLONE, references=2)
    references = ["<3>", "{5}", "<4>", "<3>", "{5}", "<4>"]
    assert shown(prompt, tokenizer) == [*BEGIN, *references, NO_FIELDS, "Hi.", *END]


def test_a_continuation(prompts: MossPromptBuilder, tokenizer: PieceTokenizer) -> None:
    prompt = prompts.build("Said. More.", MossMode.CONTINUATION)
    assert shown(prompt, tokenizer) == [*BEGIN, "None", NO_FIELDS, "Said. More.", *END, "{6}"]


def test_fields_are_one_piece_and_stripped(
    prompts: MossPromptBuilder, tokenizer: PieceTokenizer
) -> None:
    described = Fields(
        instruction="  Slowly.\n", tokens=25, quality=" ", sound_event="bell", language="Chinese"
    )
    prompt = prompts.build("Hi.", MossMode.PLAIN, described=described)
    said = (
        "\n- Instruction:\nSlowly.\n- Tokens:\n25\n- Quality:\nNone\n- Sound Event:\nbell"
        "\n- Ambient Sound:\nNone\n- Language:\nChinese\n- Text:\n"
    )
    assert shown(prompt, tokenizer) == [*BEGIN, "None", said, "Hi.", *END]


def test_rows_hold_the_frames_of_the_recordings() -> None:
    prompt = MossPrompt((7, 8, 9), (Gap(1, 5), Gap(2, 6)))
    frames = [np.array([[10, 11], [12, 13]]), np.array([[14, 15]])]
    assert prompt.rows(frames, 2, PAD).tolist() == [
        *[[7, PAD, PAD], [5, 10, 11], [5, 12, 13]],
        *[[8, PAD, PAD], [6, 14, 15], [9, PAD, PAD]],
    ]
    empty = np.empty((0, 2), np.int64)
    assert prompt.rows([empty, empty], 2, PAD).tolist() == [[i, PAD, PAD] for i in (7, 8, 9)]


@pytest.mark.parametrize("recordings", [[], [np.zeros((2, 3), np.int64)], [np.zeros(2, np.int64)]])
def test_recordings_that_do_not_fit(recordings: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match=r"frames must be|zip"):
        MossPrompt((7,), (Gap(1, 5),)).rows(recordings, 2, PAD)


@pytest.mark.parametrize(
    ("transcript", "text", "whole"),
    [
        ("It rained.", "Then not.", "It rained. Then not."),
        ("It rained. ", "Then not.", "It rained. Then not."),
        ("It rained.", "\nThen not.", "It rained.\nThen not."),
        ("下雨了。", "后来停了。", "下雨了。后来停了。"),
        ("下雨了", "then it stopped", "下雨了then it stopped"),
        ("こんにちは", "せかい", "こんにちはせかい"),
        ("안녕하세요.", "반갑습니다.", "안녕하세요. 반갑습니다."),
        ("", "Hi.", "Hi."),
        ("Hi.", "", "Hi."),
    ],
)
def test_a_transcript_and_its_continuation(transcript: str, text: str, whole: str) -> None:
    assert joined(transcript, text) == whole
