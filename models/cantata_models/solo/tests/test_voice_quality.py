"""The shipped weights against the figures committed with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from cantata_models.solo.checkpoint import WEIGHTS_FOLDER
from cantata_models.solo.training.evaluation.items import short_sentences
from cantata_models.solo.training.evaluation.judge import Judge, score
from cantata_models.solo.training.evaluation.measures import RecordingMeasures
from cantata_models.solo.training.evaluation.short import (
    Baseline,
    check_voice,
    problems,
    read_baseline,
    say,
)
from cantata_models.solo.training.evaluation.synthesis import SoloSynthesizer
from tiers import LONG

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


@pytest.mark.thorough
@pytest.mark.long
def test_no_voice_became_worse() -> None:
    """In full, every voice says every sentence, and `e2e/test_voice.py` judges the words; in short,
    the voices take turns."""
    torch.set_num_threads(1)
    synthesizer, judge, baseline = SoloSynthesizer.load(WEIGHTS_FOLDER), Judge(), read_baseline()
    assert set(baseline.voices) == set(synthesizer.voices)
    sentences, turns = short_sentences(), 1 if LONG else len(baseline.voices)
    sounds = {
        voice: say(sentences[number % turns :: turns], voice, synthesizer, judge)
        for number, voice in enumerate(baseline.voices)
    }
    found = in_full(sounds, baseline) if LONG else in_turns(sounds, baseline)
    assert found == []


def in_full(sounds: dict[str, dict[str, RecordingMeasures]], baseline: Baseline) -> list[str]:
    found: list[str] = []
    for voice, then in baseline.voices.items():
        found += problems(voice, check_voice(sounds[voice], voice, baseline), then)
    return found


def in_turns(sounds: dict[str, dict[str, RecordingMeasures]], baseline: Baseline) -> list[str]:
    """A quarter of the sentences is too few for a voice's own word error rate: all have one."""
    said = [(text, sound.words) for one in sounds.values() for text, sound in one.items()]
    wer = score(*map(list, zip(*said, strict=True))).wer
    usual_wer = float(np.mean([then.wer for then in baseline.voices.values()]))
    found: list[str] = []
    for voice, then in baseline.voices.items():
        now = replace(check_voice(sounds[voice], voice, baseline), wer=wer)
        found += problems(voice, now, replace(then, wer=usual_wer))
    return found
