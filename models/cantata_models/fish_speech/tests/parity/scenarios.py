"""What both are asked to say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cantata_models.fish_speech.config import SAMPLE_RATE
from cantata_models.fish_speech.random_checkpoint import (
    OTHER_S1,
    TINY_S1,
    TINY_S2,
    TINY_S2_ENDING,
)

SHAPES = {
    "s2": TINY_S2,
    "s2-ending": TINY_S2_ENDING,
    # Untied, and a projection leads to a narrower fast stack.
    "s2-narrow": replace(TINY_S2, fast=TINY_S1.fast),
    "s1": TINY_S1,
    "s1-tied": replace(TINY_S1, tied=True),
    "s1-other": OTHER_S1,
}
"""Sizes by name."""


@dataclass(frozen=True, slots=True)
class FishScenario:
    """One request, spoken greedily."""

    name: str
    shape: str
    text: str
    max_new_tokens: int = 9
    transcripts: tuple[str, ...] = ()
    """Of recordings, one for each speaker."""
    groups: tuple[str, ...] = ()
    """What is spoken in one go each, one after the other; empty: the whole text."""
    max_bytes: int | None = None
    """Of a group; None: the default."""
    seed: int = 1
    """Of the checkpoint."""


TURNS = (
    "<|speaker:0|>Who is there in the other one?",
    "<|speaker:1|>It is the neighbour.",
    "<|speaker:0|>Then come on in.",
)
DIALOGUE = f"{TURNS[0]} {TURNS[1]}"
SECONDS = (1.1, 1.0)
"""Of the speakers' recordings."""
SCENARIOS = (
    FishScenario("plain", "s2", "Good morning, the train is late again."),
    FishScenario("direction", "s2", "[whisper] The other one is [laughing] on the table."),
    FishScenario("speakers", "s2", "<|speaker:0|>Who is there?<|speaker:1|>It is the neighbour."),
    FishScenario("recording", "s2", "And then it rained.", transcripts=("We sat on the porch.",)),
    FishScenario(
        "recording_tagged", "s2", "Good.", transcripts=("<|speaker:3|>Yes, on the other one.",)
    ),
    FishScenario("two_voices", "s2", DIALOGUE, transcripts=("Yes, on the other one.", "We sat.")),
    FishScenario("second_group", "s2", DIALOGUE, groups=TURNS[:2], max_bytes=40),
    FishScenario(
        "last_group",
        "s2",
        f"{DIALOGUE} {TURNS[2]}",
        transcripts=("We sat on the porch.", "In the inner one."),
        groups=TURNS,
        max_bytes=50,
    ),
    FishScenario("ends", "s2-ending", "Here is the end of it.", max_new_tokens=80),
    FishScenario("chinese", "s2", "\u4f60\u597d\uff0c2026\u5e74\u3002"),
    FishScenario("one_frame", "s2", "Yes.", max_new_tokens=2),
    FishScenario("long", "s2", "On and on the other inner thing there. " * 6, max_new_tokens=40),
    FishScenario("projected", "s2-narrow", "The letter is in the drawer."),
    FishScenario("s1_plain", "s1", "The inner one is (excited) here.", max_new_tokens=16),
    FishScenario(
        "s1_recording", "s1", "And then it rained.", transcripts=("We sat on the porch.",)
    ),
    FishScenario(
        "s1_recordings", "s1", "In the other one.", transcripts=("We sat.", "On the porch.")
    ),
    FishScenario("s1_tied", "s1-tied", "On the table."),
    FishScenario("s1_other", "s1-other", "In the other one.", transcripts=("We sat.",)),
)


def scenario_named(name: str) -> FishScenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def recording(seconds: float = 1.1) -> NDArray[np.float32]:
    """[N] mono at 44.1 kHz: a gliding tone with noise."""
    count = round(seconds * SAMPLE_RATE)
    times = np.arange(count) / SAMPLE_RATE
    tone = np.sin(2 * np.pi * (180 * times + 60 * times**2)) * np.sin(2 * np.pi * 3 * times)
    noise = np.random.default_rng(11).normal(0, 0.03, count)
    return np.asarray(0.3 * tone + noise, np.float32)
