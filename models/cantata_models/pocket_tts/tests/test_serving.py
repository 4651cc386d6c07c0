"""Serving over HTTP gives exactly the stages' sound."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from functools import cache
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile

from cantata.audio.pcm import encode_s16le
from cantata_models.pocket_tts.tests.parity.scenarios import (
    PocketScenario,
    record,
    scenario_named,
    write,
)
from cantata_models.pocket_tts.tests.stage_driver import PocketCheckpoints, ask, to_frames
from served import served

pytestmark = [
    pytest.mark.integration,
    # vLLM's imports and start-up cause torch deprecation warnings.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

NAMES = ("plain", "old_state", "recording", "ends", "clamped", "long")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    with served(write("tiny", folder), folder / "voices") as address:
        yield address


def build_body(scenario: PocketScenario) -> dict[str, Any]:
    request = ask(scenario)
    body = {
        **request.options,
        "input": request.text,
        "voice": request.voice,
        "seed": request.seed,
        "temperature": request.temperature,
        "response_format": "pcm",
    }
    if scenario.seconds:
        file = io.BytesIO()
        sound = record(scenario)
        soundfile.write(file, sound, scenario.sample_rate, format="WAV", subtype="PCM_16")
        encoded = base64.b64encode(file.getvalue()).decode()
        body["ref_audio"] = f"data:audio/wav;base64,{encoded}"
    return body


def post(url: str, body: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{url}/v1/audio/speech", json=body, timeout=120)


@cache
def heard(url: str, scenario: PocketScenario) -> bytes:
    response = post(url, build_body(scenario))
    assert response.status_code == 200, response.text
    return response.content


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_heard_is_what_the_stages_make(
    url: str, checkpoints: PocketCheckpoints, name: str
) -> None:
    scenario, loaded = scenario_named(name), checkpoints.get("tiny")
    pieces = [loaded.decode(frames) for frames in to_frames(loaded, scenario)]
    sound = heard(url, scenario)
    assert sound == encode_s16le(np.concatenate(pieces)[:, None])
    assert np.abs(np.frombuffer(sound, "<i2")).max() > 3000
    # Again, now that its recording and its voice's positions are kept.
    assert post(url, build_body(scenario)).content == sound


def test_every_request_sounds_different(url: str) -> None:
    assert len({heard(url, scenario_named(name)) for name in NAMES}) == len(NAMES)


def test_the_listing_tells_what_the_model_can_do(url: str) -> None:
    (model,) = httpx.get(f"{url}/v1/audio/models", timeout=60).json()["models"]
    assert (model["id"], model["sample_rate"], model["channels"]) == ("pocket_tts", 24_000, 1)
    able = model["capabilities"]
    assert able["references"]
    assert able["languages"] == ["en"]
    assert {"noise_clamp", "eos_threshold", "frames_after_eos"} <= set(able["options"])


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"sampler_decode_steps": 99}, "sampler_decode_steps", "less than or equal to 32"),
        ({"noise_clamp": -1}, "noise_clamp", "greater than 0"),
        ({"eos_threshold": "high"}, "eos_threshold", "valid number"),
    ],
)
def test_what_cannot_be_served_is_named(
    url: str, fields: dict[str, Any], param: str, message: str
) -> None:
    response = post(url, {**build_body(scenario_named("plain")), **fields})
    assert response.status_code == 400, response.headers
    error = response.json()["error"]
    assert error["param"] == param
    assert message in error["message"]
