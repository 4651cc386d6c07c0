"""The served talker says what its plain statement says, in every frame and score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from cantata.contract.data.request import SpeechRequest
from cantata_models.fish_speech.tests.parity.scenarios import (
    SCENARIOS,
    FishScenario,
    scenario_named,
)
from cantata_models.fish_speech.tests.talker_driver import (
    FishTalkers,
    build_request,
    differences,
    observe,
    speak,
)
from recorded_frames import recorded_frames

pytestmark = pytest.mark.vllm


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_frame_and_score_is_the_statement_s(
    talkers: FishTalkers, scenario: FishScenario
) -> None:
    loaded = talkers.of(scenario)
    observed = observe(loaded, build_request(scenario))
    assert differences(loaded, observed, scenario) == []
    # What is said depends on what is asked.
    assert len({tuple(frame) for frame in observed.codes.tolist()}) > len(observed.codes) // 2


def test_speech_ends_by_itself(talkers: FishTalkers) -> None:
    scenario = scenario_named("ends")
    codes = speak(talkers.of(scenario), {"a": build_request(scenario)})["a"]
    assert 0 < len(codes) < scenario.max_new_tokens - 1


def test_s1_says_tokens_that_are_not_semantic(talkers: FishTalkers) -> None:
    scenario = scenario_named("s1_plain")
    loaded = talkers.of(scenario)
    codes = speak(loaded, {"a": build_request(scenario)})["a"]
    is_other = codes[:, 0] > loaded.talker.end_code
    assert is_other.any()
    assert not is_other.all()
    assert codes[:, 1:].max() < 1024


def test_s2_feeds_back_codes_that_the_codec_lacks(talkers: FishTalkers) -> None:
    scenario = scenario_named("plain")
    codes = speak(talkers.of(scenario), {"a": build_request(scenario)})["a"]
    assert codes[:, 1:].max() >= 32  # of 64; the tiny codec's residual codebooks have 32


def build_requests(name: str) -> dict[str, SpeechRequest]:
    """Eight different ones, greedy and sampled, of several lengths; two follow a recording."""
    scenario = scenario_named(name)
    return {
        f"r{number}": build_request(
            replace(
                scenario,
                text=" ".join(["Number", *["and"] * number, "on."]),
                transcripts=("In the other one.",) if number % 4 == 3 else (),
            ),
            seed=number,
            temperature=0.9 if number % 2 else 0.0,
            options={"max_new_tokens": 6 + number},
        )
        for number in range(8)
    }


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("name", ["plain", "s1_plain"])
def test_requests_speak_the_same_alone_together_and_recorded(
    talkers: FishTalkers, name: str
) -> None:
    """The completion of frames may be recorded, as a CUDA graph is."""
    loaded, requests = talkers.of(scenario_named(name)), build_requests(name)
    alone = {key: speak(loaded, {key: request})[key] for key, request in requests.items()}
    together = speak(loaded, requests)
    with recorded_frames(loaded.talker):
        recorded = speak(loaded, requests)
    for key, codes in alone.items():
        np.testing.assert_array_equal(together[key], codes, err_msg=key)
        np.testing.assert_array_equal(recorded[key], codes, err_msg=key)
    assert len({codes.tobytes() for codes in alone.values()}) == len(alone)


def test_a_recording_changes_what_is_said(talkers: FishTalkers) -> None:
    scenario = scenario_named("recording")
    loaded = talkers.of(scenario)
    frames = loaded.recorded_frames()
    assert len(frames) == 24  # 1.1 s, the last frame filled with silence
    assert len(torch.unique(frames, dim=0)) > 12
    codes = [
        speak(loaded, {"a": build_request(replace(scenario, transcripts=said))})["a"].tobytes()
        for said in ((), ("We sat on the porch.",), ("We sat in the garden.",))
    ]
    assert len(set(codes)) == 3
