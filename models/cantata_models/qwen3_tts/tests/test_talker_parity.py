"""The served talker matches the reference in every frame and score, in every layout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from cantata_models.qwen3_tts.plugin import TALKER
from cantata_models.qwen3_tts.tests.parity.scenarios import SCENARIOS, Qwen3TtsScenario
from cantata_models.qwen3_tts.tests.talker_driver import (
    GOLDENS,
    Inputs,
    Qwen3TtsTalkers,
    build_request,
    differences,
    get_inputs,
    observe,
    scenario_named,
    speak,
)
from recorded_frames import recorded_frames

pytestmark = pytest.mark.vllm

by_name = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


@pytest.mark.thorough(every=3)
@by_name
def test_every_frame_and_score_is_the_reference_s(
    talkers: Qwen3TtsTalkers, scenario: Qwen3TtsScenario
) -> None:
    loaded = talkers.get(scenario.checkpoint)
    assert differences(observe(loaded, get_inputs(loaded.builder, scenario)), scenario) == []


@by_name
def test_every_input_row_is_the_reference_s(
    talkers: Qwen3TtsTalkers, scenario: Qwen3TtsScenario
) -> None:
    loaded, goldens = talkers.get(scenario.checkpoint), np.load(GOLDENS)
    with torch.inference_mode():
        inputs = get_inputs(loaded.builder, scenario)
        source = loaded.talker.open(inputs[TALKER])
        for chunk in loaded.encoded("request", inputs):
            source.feed(chunk.payload, final=chunk.final)
        prompt = source.prompt()
    rows, trailing = (goldens[f"{scenario.name}/{part}"] for part in ("rows", "trailing"))
    ours = prompt.rows.numpy()
    assert prompt.prompt_len == len(rows)
    np.testing.assert_allclose(ours[: len(rows)], rows, atol=2e-5)
    # Both repeat their last row forever; ours includes it once, the reference's does not.
    np.testing.assert_allclose(ours[len(rows) :][: len(trailing)], trailing, atol=2e-5)
    pad = loaded.talker._project(torch.tensor([loaded.talker._config.text.pad]))
    torch.testing.assert_close(prompt.rows[-1:], pad)


def test_scenarios_in_company_speak_as_alone(talkers: Qwen3TtsTalkers) -> None:
    key = scenario_named("voice").checkpoint
    loaded = talkers.get(key)
    voice = scenario_named("voice")
    requests: dict[str, Inputs] = {}
    for number in range(8):
        text = " ".join(["Number", *["and"] * number, "on."])
        request = replace(
            build_request(voice),
            text=text,
            seed=number,
            temperature=0.9 if number % 2 else 0.0,
            options={"max_new_tokens": 12 + number, "non_streaming_mode": number % 3 == 0},
        )
        (built,) = loaded.builder.build("request", request)
        requests[f"r{number}"] = built.inputs
    alone = {name: speak(loaded, {name: inputs})[name] for name, inputs in requests.items()}
    together = speak(loaded, requests)
    for name, codes in alone.items():
        np.testing.assert_array_equal(together[name], codes, err_msg=name)
    assert len({codes.tobytes() for codes in alone.values()}) == len(alone)


@pytest.mark.parametrize(("temperature", "penalty"), [(0.0, 1.0), (0.9, 1.5)])
def test_frames_are_the_same_from_recorded_completion(
    talkers: Qwen3TtsTalkers, temperature: float, penalty: float
) -> None:
    scenario = SCENARIOS[0]
    loaded = talkers.get(scenario.checkpoint)
    requests: dict[str, Inputs] = {}
    for seed in range(5):
        asked = build_request(replace(scenario, max_new_tokens=4 + 2 * seed))
        options = {**asked.options, "repetition_penalty": penalty}
        asked = replace(asked, temperature=temperature, seed=seed, options=options)
        requests[str(seed)] = loaded.builder.build("request", asked)[0].inputs
    plain = speak(loaded, requests)
    with recorded_frames(loaded.talker):
        recorded = speak(loaded, requests)
    assert len({len(codes) for codes in plain.values()}) > 1
    for name, codes in plain.items():
        np.testing.assert_array_equal(recorded[name], codes)
