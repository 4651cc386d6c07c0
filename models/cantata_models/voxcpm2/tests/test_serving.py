"""Serving over HTTP gives exactly the stages' sound."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from cantata.audio.pcm import encode_s16le
from cantata_models.voxcpm2.tests.parity.recordings import recording
from cantata_models.voxcpm2.tests.parity.scenarios import TINY_3, VoxCpm2Scenario
from cantata_models.voxcpm2.tests.stage_driver import VoxCpm2Checkpoints, build_request
from served import served
from sounds import data_url, sound_file
from speech_client import SpeechClient

pytestmark = pytest.mark.vllm

PATCH_BYTES = 7680 * 2
TEXT = "The other one is on the table."
SCENARIOS = (
    VoxCpm2Scenario("plain", TEXT, seed=5),
    VoxCpm2Scenario("described", TEXT, seed=5, description="a calm old man"),
    VoxCpm2Scenario("clone", TEXT, seed=5, mode="voice_clone", seconds=1.1, sample_rate=24_000),
    VoxCpm2Scenario(
        "continuation", TEXT, seed=5, mode="continuation", seconds=1.3, transcript="It rained. "
    ),
    VoxCpm2Scenario(
        "combined", TEXT, seed=5, mode="combined", seconds=1.0, transcript="It rained. "
    ),
    VoxCpm2Scenario("own_steps", TEXT, seed=5, steps=4, guidance=3.0),
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpeechClient]:
    folder = tmp_path_factory.mktemp("served")
    with served(TINY_3.write(folder), folder / "voices") as address:
        yield SpeechClient(address)


def encode_recording(scenario: VoxCpm2Scenario) -> str:
    sound = recording(scenario.seconds, scenario.sample_rate, seed=1)
    return data_url(sound_file(sound[:, None], scenario.sample_rate, subtype="PCM_16"))


def build_body(scenario: VoxCpm2Scenario) -> dict[str, Any]:
    request = build_request(scenario)
    body: dict[str, Any] = {key: v for key, v in request.options.items() if v is not None}
    body |= {"input": request.text, "seed": request.seed}
    if request.instructions:
        body["instructions"] = request.instructions
    if scenario.seconds:
        body["ref_audio"] = encode_recording(scenario)
    if scenario.transcript:
        body["ref_text"] = scenario.transcript
    return body


@cache
def heard(client: SpeechClient, scenario: VoxCpm2Scenario) -> bytes:
    return client.hear(**build_body(scenario))


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_what_is_heard_is_what_the_stages_make(
    client: SpeechClient, checkpoints: VoxCpm2Checkpoints, scenario: VoxCpm2Scenario
) -> None:
    sound = heard(client, scenario)
    loaded = checkpoints.get(TINY_3)
    expected = loaded.decode(loaded.talk({"request": loaded.inputs(build_request(scenario))}))
    assert sound == encode_s16le(expected[:, None])
    assert 0 < len(sound) <= scenario.max_frames * PATCH_BYTES
    assert len(sound) % PATCH_BYTES == 0
    assert np.abs(np.frombuffer(sound, "<i2")).max() > 300


def test_every_mode_sounds_different(client: SpeechClient) -> None:
    assert len({heard(client, scenario) for scenario in SCENARIOS}) == len(SCENARIOS)


def test_the_listing_tells_what_the_model_can_do(client: SpeechClient) -> None:
    model = client.describe()
    assert (model["id"], model["sample_rate"], model["channels"]) == ("voxcpm2", 48_000, 1)
    able = model["capabilities"]
    assert able["references"]
    assert able["instructions"]
    assert {"inference_timesteps", "cfg_value", "mode", "max_new_tokens"} <= set(able["options"])


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"inference_timesteps": 0}, "inference_timesteps", "greater than or equal to 2"),
        ({"cfg_value": -1}, "cfg_value", "greater than or equal to 0"),
        ({"mode": "voice_clone"}, "ref_audio", "needs ref_audio"),
        ({"input": "龙" * 2000}, "input", "none is left for sound"),
    ],
)
def test_what_cannot_be_served_is_named(
    client: SpeechClient, fields: dict[str, Any], param: str, message: str
) -> None:
    client.assert_refused(param, message, **{**build_body(SCENARIOS[0]), **fields})
