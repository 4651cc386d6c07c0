"""Served requests draw by the rules of `sampling.py`, alone and in company, by their seeds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cantata.contract.data.request import ReferenceAudio, SpeechRequest
from cantata.stages.ar.sampling import draw_counter_uniforms
from cantata_layers.sampling_settings import SamplingSettings
from cantata_models.moss_tts.tests.parity.recordings import SAMPLE_RATE, stereo_recording
from cantata_models.moss_tts.tests.parity.scenarios import Model
from cantata_models.moss_tts.tests.sampling import penalized, probabilities
from cantata_models.moss_tts.tests.stage_driver import (
    CodeArray,
    Inputs,
    MossCheckpoints,
    MossStages,
    heard,
    watched,
)
from recorded_frames import recorded_frames

pytestmark = pytest.mark.vllm

ROUNDING = 1e-5
"""A uniform number this close to the edge between two codes may fall on either side."""
CHECKPOINT_SEED = 1
MAX_FRAMES = 16
ASKED = SpeechRequest("The street smells of wet stone.", "default", seed=11)
STOP = SamplingSettings(1.0, 50, 1.0)
by_model = pytest.mark.parametrize("model", list(Model))


def asked(**options: Any) -> SpeechRequest:
    return replace(ASKED, options={"max_new_tokens": MAX_FRAMES, **options})


def speak(loaded: MossStages, request: SpeechRequest) -> CodeArray:
    (inputs,) = loaded.parts(request)
    return heard(loaded.talk({"request": inputs}), "request")


def choices(scores: NDArray[np.float32], settings: SamplingSettings, uniform: float) -> set[int]:
    """Return what may be drawn under different rounding: by inverse CDF, the likeliest first."""
    shares = probabilities(scores, settings)
    order = np.argsort(-shares, kind="stable")
    edges = shares[order].astype(np.float64).cumsum()
    kept = int((shares > 0).sum())
    found = (int((edges <= (uniform + shift) * edges[-1]).sum()) for shift in (-ROUNDING, ROUNDING))
    return {int(order[min(place, kept - 1)]) for place in found}


@by_model
@pytest.mark.parametrize(
    ("audio", "penalty", "stop"),
    [
        (SamplingSettings(1.7, 25, 0.8), 1.0, STOP),
        (SamplingSettings(0.8, 25, 0.95), 1.2, STOP),
        (SamplingSettings(1.3, 0, 1.0), 1.5, SamplingSettings(0.7, 0, 1.0)),
        (SamplingSettings(0.7, 5, 0.6), 2.0, SamplingSettings(0.0, 0, 1.0)),
        (SamplingSettings(0.0, 0, 1.0), 1.5, SamplingSettings(1.5, 0, 0.9)),
    ],
)
def test_every_choice_follows_the_rules(
    checkpoints: MossCheckpoints,
    model: Model,
    audio: SamplingSettings,
    penalty: float,
    stop: SamplingSettings,
) -> None:
    loaded = checkpoints.of(model, CHECKPOINT_SEED)
    request = replace(
        asked(
            top_k=audio.top_k,
            top_p=audio.top_p,
            repetition_penalty=penalty,
            text_temperature=stop.temperature,
            text_top_k=stop.top_k,
            text_top_p=stop.top_p,
        ),
        temperature=audio.temperature,
    )
    with watched(loaded.network) as seen:
        codes = speak(loaded, request)
    books = codes.shape[1]
    uniforms = draw_counter_uniforms(11, MAX_FRAMES, books + 1).numpy()
    assert len(codes) > 2
    for frame, spoken in enumerate(codes.tolist()):
        assert 0 in choices(seen.stops[frame], stop, uniforms[frame, books]), frame
        for book, code in enumerate(spoken):
            scores = penalized(seen.codes[frame][book], codes[:frame, book], penalty)
            assert code in choices(scores, audio, uniforms[frame, book]), (frame, book)
    if len(codes) < MAX_FRAMES:
        assert 1 in choices(seen.stops[len(codes)], stop, uniforms[len(codes), books])


@by_model
def test_what_a_request_leaves_open_is_the_published_program_s(
    checkpoints: MossCheckpoints, model: Model
) -> None:
    loaded = checkpoints.of(model, CHECKPOINT_SEED)
    temperature, top_p, penalty = (1.7, 0.8, 1.0) if model is Model.LOCAL else (0.8, 0.95, 1.2)
    stop = {"text_temperature": 1.0, "text_top_k": 50, "text_top_p": 1.0}
    said = asked(top_k=25, top_p=top_p, repetition_penalty=penalty, **stop)
    same = speak(loaded, replace(said, temperature=temperature))
    np.testing.assert_array_equal(speak(loaded, asked()), same)


@by_model
def test_seeds_hold_and_matter(checkpoints: MossCheckpoints, model: Model) -> None:
    loaded = checkpoints.of(model, CHECKPOINT_SEED)
    seeds = (1, 2, 1)
    first, other, again = [speak(loaded, replace(asked(), seed=seed)) for seed in seeds]
    np.testing.assert_array_equal(first, again)
    assert first.tobytes() != other.tobytes()


@by_model
def test_temperature_zero_is_greedy_at_every_level(
    checkpoints: MossCheckpoints, model: Model
) -> None:
    loaded = checkpoints.of(model, CHECKPOINT_SEED)
    greedy = [speak(loaded, replace(asked(), temperature=0.0, seed=seed)) for seed in range(2)]
    assert len({codes.tobytes() for codes in greedy}) == 1
    stopping = [
        speak(loaded, replace(asked(text_temperature=2.0), temperature=0.0, seed=seed))
        for seed in range(4)
    ]
    assert len({len(codes) for codes in stopping}) > 1


@by_model
def test_requests_in_company_speak_as_alone(checkpoints: MossCheckpoints, model: Model) -> None:
    loaded = checkpoints.of(model, CHECKPOINT_SEED)
    reference = ReferenceAudio(stereo_recording(0.9, 1), SAMPLE_RATE)
    requests: dict[str, Inputs] = {}
    for number in range(8):
        transcript = "Hello." if number % 4 == 3 else None
        request = replace(
            asked(max_new_tokens=4 + number),
            text=" ".join(["Number", *["and"] * number, "on."]),
            seed=number,
            temperature=0.0 if number % 3 == 0 else 1.1,
            reference=replace(reference, transcript=transcript) if number % 2 else None,
        )
        (requests[f"r{number}"],) = loaded.parts(request)
    together = loaded.talk(requests)
    alone = {name: loaded.talk({name: inputs}) for name, inputs in requests.items()}
    for name, made in alone.items():
        np.testing.assert_array_equal(heard(together, name), heard(made, name), err_msg=name)
    assert len({heard(made, name).tobytes() for name, made in alone.items()}) == 8


@by_model
def test_frames_are_the_same_from_recorded_completion(
    checkpoints: MossCheckpoints, model: Model
) -> None:
    """Greedy and drawn, with a penalty and without, in fewer rows as requests end."""
    loaded = checkpoints.of(model, CHECKPOINT_SEED)
    wanted = {
        "usual": replace(asked(max_new_tokens=5), seed=3),
        "greedy": replace(asked(max_new_tokens=8), temperature=0.0),
        "greedy, no penalty": replace(
            asked(repetition_penalty=1.0, max_new_tokens=12), temperature=0.0
        ),
        "penalized": asked(repetition_penalty=1.5, max_new_tokens=10),
        "drawn": asked(repetition_penalty=1.0, max_new_tokens=14),
    }
    requests = {name: loaded.parts(request)[0] for name, request in wanted.items()}
    plain = loaded.talk(requests)
    with recorded_frames(loaded.network):
        recorded = loaded.talk(requests)
    for name in requests:
        assert len(heard(plain, name)) > 2
        np.testing.assert_array_equal(heard(plain, name), heard(recorded, name))
