"""The shipped weights against the figures committed with them."""

from __future__ import annotations

import pytest
import torch

from cantata_models.solo.checkpoint import WEIGHTS_FOLDER
from cantata_models.solo.training.evaluation.judge import Judge
from cantata_models.solo.training.evaluation.short import problems, read_baseline, say_and_check
from cantata_models.solo.training.evaluation.synthesis import Synthesiser

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


def test_no_voice_became_worse() -> None:
    torch.set_num_threads(1)
    synthesiser, judge, baseline = Synthesiser.load(WEIGHTS_FOLDER), Judge(), read_baseline()
    assert set(baseline.voices) == set(synthesiser.voices)
    found: list[str] = []
    for voice, then in baseline.voices.items():
        now = say_and_check(voice, baseline, synthesiser, judge)
        found += problems(voice, now, then)
    assert found == []
