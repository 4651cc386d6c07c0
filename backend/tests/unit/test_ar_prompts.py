"""Prompts whose parts contradict each other, or do not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from cantata.contract.data.errors import InvalidRequest, RequestFailed
from cantata.contract.model.embedding_source import TalkerPrompt
from cantata.stages.ar.prompts import check_prompt

WHOLE = TalkerPrompt(
    torch.zeros(4, 2),
    prompt_len=3,
    max_frames=5,
    positions=torch.zeros(3, 3, dtype=torch.int64),
    token_ids=torch.zeros(3, dtype=torch.int64),
)


def test_a_prompt_that_fits() -> None:
    check_prompt(WHOLE, max_model_len=8)
    with pytest.raises(InvalidRequest, match="needs 8 positions, more than the 7"):
        check_prompt(WHOLE, max_model_len=7)


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        (replace(WHOLE, prompt_len=5, positions=None, token_ids=None), "5 positions, 4 rows"),
        (replace(WHOLE, prompt_len=0, positions=None, token_ids=None), "0 positions, 4 rows"),
        (replace(WHOLE, max_frames=0), "and 0 frames"),
        (replace(WHOLE, prompt_len=2), r"parts of \[2, 3\] positions"),
        (replace(WHOLE, token_ids=torch.zeros(4)), r"parts of \[3, 4\] positions"),
        (replace(WHOLE, positions=torch.zeros(3, 1)), r"parts of \[1, 3\] positions"),
    ],
)
def test_contradictions_are_the_talker_s_fault(prompt: TalkerPrompt, problem: str) -> None:
    with pytest.raises(RequestFailed, match=problem):
        check_prompt(prompt, max_model_len=64)
