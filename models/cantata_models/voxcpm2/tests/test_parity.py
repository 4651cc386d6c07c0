"""The stages make what the reference package makes, with the same noise and alone or together."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from cantata.config import ArDeployment
from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.errors import ConfigError
from cantata.stages.ar import build_stage
from cantata_models.voxcpm2.plugin import PIPELINE, TALKER
from cantata_models.voxcpm2.prompt import DEFAULT_STEPS
from cantata_models.voxcpm2.random_checkpoint import TALKER_FILE
from cantata_models.voxcpm2.request_builder import load_builder
from cantata_models.voxcpm2.tests.parity.scenarios import (
    SCENARIOS,
    STRETCHED_3,
    TINY_3,
    VoxCpm2Scenario,
    scenario_named,
)
from cantata_models.voxcpm2.tests.parity.write_goldens import GOLDENS, PCM_STRIDE, checksum
from cantata_models.voxcpm2.tests.stage_driver import (
    VoxCpm2Checkpoints,
    build_request,
    golden,
    heard,
)
from recorded_frames import recorded_frames

pytestmark = pytest.mark.vllm

LATENT_TOLERANCE = 1e-4
PCM_TOLERANCE = 1e-3
ENCODER_TOLERANCE = 1e-4
Alone = Callable[[VoxCpm2Scenario], Sequence[Chunk[Payload]]]
RECORDED = [scenario for scenario in SCENARIOS if scenario.seconds]
"""Every scenario with a recording."""


def by_name(scenario: VoxCpm2Scenario) -> str:
    return scenario.name


@pytest.fixture(scope="module")
def alone(checkpoints: VoxCpm2Checkpoints) -> Alone:
    """What the talker makes of a scenario without company, asked once for all tests."""

    @cache
    def made(scenario: VoxCpm2Scenario) -> Sequence[Chunk[Payload]]:
        loaded = checkpoints.get(scenario.checkpoint)
        return loaded.talk({"request": loaded.inputs(build_request(scenario))})

    return made


def test_the_checkpoints_are_those_of_the_goldens(tmp_path: Path) -> None:
    expected = json.loads((GOLDENS / "checksums.json").read_text())
    assert set(expected) == {f"{key.name}-{key.seed}" for key in (TINY_3, STRETCHED_3)}
    assert checksum(TINY_3.write(tmp_path)) == expected["tiny-3"]


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=by_name)
def test_latents_and_sound_are_the_reference_s(
    checkpoints: VoxCpm2Checkpoints, alone: Alone, scenario: VoxCpm2Scenario
) -> None:
    chunks = alone(scenario)
    theirs = golden(scenario, "latents")
    ours = heard(chunks, "request")
    assert ours.shape == theirs.shape, "it ends where the reference does"
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=LATENT_TOLERANCE)
    sound = checkpoints.get(scenario.checkpoint).decode(chunks)
    assert len(sound) == golden(scenario, "samples")
    np.testing.assert_allclose(
        sound[::PCM_STRIDE], golden(scenario, "pcm"), rtol=0, atol=PCM_TOLERANCE
    )


@pytest.mark.parametrize("scenario", RECORDED, ids=by_name)
def test_recordings_are_encoded_as_the_reference_s(
    checkpoints: VoxCpm2Checkpoints, scenario: VoxCpm2Scenario
) -> None:
    loaded = checkpoints.get(scenario.checkpoint)
    (chunk,) = loaded.encoded("request", loaded.inputs(build_request(scenario)))
    theirs = golden(scenario, "recording")
    np.testing.assert_allclose(chunk.payload.values, theirs, rtol=0, atol=ENCODER_TOLERANCE)  # type: ignore[union-attr]


@pytest.mark.parametrize("every", [0, 1])
def test_company_changes_no_bit(checkpoints: VoxCpm2Checkpoints, alone: Alone, every: int) -> None:
    """Other modes, steps, guidances and lengths beside it, begun together or one by one."""
    loaded = checkpoints.get(TINY_3)
    mixed = [scenario for scenario in SCENARIOS if scenario.checkpoint == TINY_3][:8]
    mixed[-1] = scenario_named("few_steps")
    requests = {scenario.name: loaded.inputs(build_request(scenario)) for scenario in mixed}
    made = loaded.talk(requests, every)
    for scenario in mixed:
        usual = heard(alone(scenario), "request")
        np.testing.assert_array_equal(heard(made, scenario.name), usual, err_msg=scenario.name)


def test_latents_are_the_same_from_recorded_completion(
    checkpoints: VoxCpm2Checkpoints, alone: Alone
) -> None:
    """The solver and the local encoder, replayed for fewer rows as requests end."""
    loaded = checkpoints.get(TINY_3)
    asked = [scenario for scenario in SCENARIOS if scenario.checkpoint == TINY_3]
    mixed = [scenario for scenario in asked if scenario.steps == DEFAULT_STEPS][:6]
    mixed.append(replace(scenario_named("few_steps"), name="guided", steps=DEFAULT_STEPS))
    requests = {scenario.name: loaded.inputs(build_request(scenario)) for scenario in mixed}
    with recorded_frames(loaded.network):
        made = loaded.talk(requests, every=1)
    for scenario in mixed:
        usual = heard(alone(scenario), "request")
        np.testing.assert_array_equal(heard(made, scenario.name), usual, err_msg=scenario.name)


def test_in_bfloat16_it_says_nearly_the_same(tmp_path: Path) -> None:
    """As it is deployed; the first patch, before rounding has led elsewhere."""
    folder = TINY_3.write(tmp_path)
    deployment = ArDeployment(slots=2, max_model_len=256, dtype="bfloat16")
    stage = build_stage(PIPELINE.stage(TALKER), folder, deployment)
    wanted = scenario_named("described")
    (built,) = load_builder(folder).build("request", build_request(wanted))
    stage.add("request", built.inputs[TALKER], batch=False)
    made: list[Chunk[Payload]] = []
    while stage.has_work():
        made += stage.step().chunks
    ours, theirs = heard(made, "request"), golden(wanted, "latents")
    assert np.isfinite(ours).all()
    assert len(ours) > 3
    off = np.sqrt(np.mean(np.square(ours[0] - theirs[0])))
    assert 0 < off < 0.1 * theirs[0].std()
    stage.close()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"base_lm.layers.0.self_attn.q_proj.lora_A": torch.ones(1, 64)}, r"no parameter .*lora_A"),
        ({"stop_head.weight": torch.ones(3, 64)}, r"stop_head\.weight of \[3, 64\]"),
        ({"stop_proj.bias": None}, r"lacks weights of stop_proj\.bias"),
    ],
)
def test_weights_that_do_not_fit_are_named(
    tmp_path: Path, changed: dict[str, torch.Tensor | None], message: str
) -> None:
    folder = TINY_3.write(tmp_path)
    tensors: dict[str, torch.Tensor | None] = {**load_file(folder / TALKER_FILE), **changed}
    kept = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    save_file(kept | {"audio_vae.x": torch.ones(1)}, folder / TALKER_FILE)
    with pytest.raises(ConfigError, match=message):
        build_stage(PIPELINE.stage(TALKER), folder, ArDeployment(slots=1, max_model_len=64))
