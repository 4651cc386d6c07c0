"""Incremental text gives the same speech as the whole text, in every layout that allows it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cantata.contract.data.chunks import Codes
from cantata_models.qwen3_tts.tests.parity.scenarios import SCENARIOS, Qwen3TtsScenario
from cantata_models.qwen3_tts.tests.talker_driver import (
    GOLDENS,
    CodeArray,
    LoadedQwen3Talker,
    Qwen3TtsTalkers,
    build_request,
)

pytestmark = pytest.mark.vllm

STREAMED = [scenario for scenario in SCENARIOS if scenario.streaming_text]


def speak_arriving(
    loaded: LoadedQwen3Talker, scenario: Qwen3TtsScenario, characters: int
) -> CodeArray:
    """Send the text `characters` at a time, synthesizing as far as possible after each part."""
    stage, spoken = loaded.stage, list[CodeArray]()

    def run() -> None:
        while stage.has_work():
            frames = [chunk.payload for chunk in stage.step().chunks]
            spoken.extend(
                part.values[part.context_frames :] for part in frames if isinstance(part, Codes)
            )

    request = replace(build_request(scenario), text="")
    feed = loaded.builder.open("request", request)
    started = False
    pieces = [
        scenario.text[start : start + characters]
        for start in range(0, len(scenario.text), characters)
    ]
    for index, piece in enumerate(pieces):
        last = index == len(pieces) - 1
        feed.push(piece)
        if last:
            feed.close()
        if not started:
            begun = feed.start()
            if begun is None:
                continue
            loaded.add("request", begun.inputs)
            started = True
        else:
            more = feed.more()
            if more is not None:
                stage.extend("request", more, final=last)
        run()
    return np.concatenate(spoken)


@pytest.mark.thorough(every=10)
@pytest.mark.parametrize("characters", [1, 7, 1000])
@pytest.mark.parametrize("scenario", STREAMED, ids=lambda scenario: scenario.name)
def test_the_frames_are_the_reference_s(
    talkers: Qwen3TtsTalkers, scenario: Qwen3TtsScenario, characters: int
) -> None:
    codes = speak_arriving(talkers.get(scenario.checkpoint), scenario, characters)
    np.testing.assert_array_equal(codes, np.load(GOLDENS)[f"{scenario.name}/codes"])
