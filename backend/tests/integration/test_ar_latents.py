"""Frames that are vectors: the same in every company, fed back and decoded as codes are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cantata.config import ArDeployment
from cantata.contract.data.chunks import Rows
from cantata.contract.data.errors import ConfigError
from cantata.contract.data.request import SamplingOptions
from cantata.contract.process.stage import Stage
from cantata.stages.ar import build_stage
from tiny_talker.checkpoint import LATENT_SIZE, save_tiny_checkpoint
from tiny_talker.driving import TALKER, Frames, listen, listen_preempted, varied_payloads
from tiny_talker.inputs import TinyInput
from tiny_talker.latent_plugin import LATENT_TALKER

pytestmark = pytest.mark.vllm

EULER_STEPS = 2
DEPLOYMENT = ArDeployment(slots=8, max_model_len=128, max_num_batched_tokens=16)
REQUESTS = varied_payloads(8)
TEN = TinyInput([5, 6, 7], max_frames=10, min_frames=10, sampling=SamplingOptions(seed=3))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="module")
def stage(checkpoint: Path) -> Iterator[Stage]:
    stage = build_stage(LATENT_TALKER, checkpoint, DEPLOYMENT)
    yield stage
    assert set(stage.get_counts().values()) == {0}
    stage.close()


@pytest.fixture(scope="module")
def alone(stage: Stage) -> dict[str, Frames]:
    return {name: listen(stage, {name: asked}).frames(name) for name, asked in REQUESTS.items()}


def test_lengths_and_ends_are_the_token_s(alone: dict[str, Frames]) -> None:
    made = {name: len(latents) for name, latents in alone.items()}
    assert all(REQUESTS[name].min_frames <= made[name] for name in made)
    assert any(made[name] < REQUESTS[name].max_frames for name in made), "some end by themselves"
    assert any(len(np.unique(latents)) > LATENT_SIZE for latents in alone.values())


def test_alike_alone_and_in_company(stage: Stage, alone: dict[str, Frames]) -> None:
    listener = listen(stage, REQUESTS, every=2)
    for name, latents in alone.items():
        np.testing.assert_array_equal(listener.frames(name), latents, err_msg=name)


def test_alike_after_preemption(stage: Stage, alone: dict[str, Frames]) -> None:
    listener = listen_preempted(stage, REQUESTS)
    for name, latents in alone.items():
        np.testing.assert_array_equal(listener.frames(name), latents, err_msg=name)


def test_a_frame_begins_with_the_noise_of_its_seed(stage: Stage) -> None:
    """Against the definition in NumPy, with the hidden states of the same pass."""
    latents = listen(stage, {"r": TEN}).frames("r")
    talker = stage._talker  # type: ignore[attr-defined]
    noise = talker.draw_noise(3, 10).numpy()
    np.testing.assert_array_equal(noise[:4], talker.draw_noise(3, 4).numpy())
    # The target of each frame, recovered from the last one's noise: equal steps towards tanh.
    kept = (1 - 0.5 / EULER_STEPS) ** EULER_STEPS
    targets = (latents - kept * noise) / (1 - kept)
    assert np.abs(targets).max() <= 1 + 1e-5, "tanh is within -1..1"
    others = (latents - kept * np.roll(noise, 1, axis=0)) / (1 - kept)
    assert np.abs(others).max() > 1.5, "another frame's noise does not fit"
    other_seed = replace(TEN, sampling=SamplingOptions(seed=4))
    assert not np.array_equal(listen(stage, {"r": other_seed}).frames("r"), latents)


def test_each_frame_is_fed_back(stage: Stage) -> None:
    usual = listen(stage, {"r": TEN}).frames("r")
    talker = stage._talker  # type: ignore[attr-defined]
    embed = talker.embed_frames
    try:
        talker.embed_frames = lambda frames: embed(frames) * 0.5
        changed = listen(stage, {"r": TEN}).frames("r")
    finally:
        talker.embed_frames = embed
    np.testing.assert_array_equal(changed[0], usual[0])
    assert (np.abs(changed[1:] - usual[1:]).max(axis=1) > 0).all()


def test_a_context_of_latents_primes_the_decoder(stage: Stage) -> None:
    context = np.linspace(-1, 1, 2 * LATENT_SIZE, dtype=np.float32).reshape(2, LATENT_SIZE)
    listener = listen(stage, {"r": replace(TEN, context=context.tolist())})  # type: ignore[arg-type]
    first, *rest = listener.chunks["r"]
    assert isinstance(first.payload, Rows)
    assert (first.payload.context_frames, first.payload.units) == (2, 1)
    np.testing.assert_array_equal(first.payload.values[:2], context)
    assert [chunk.payload.context_frames for chunk in rest] == [0] * len(rest)
    plain = listen(stage, {"r": TEN}).frames("r")
    np.testing.assert_array_equal(listener.frames("r")[2:], plain)


def test_ports_and_model_agree(checkpoint: Path) -> None:
    codes = replace(TALKER, factory=LATENT_TALKER.factory)
    with pytest.raises(ConfigError, match=r"ports \['codes'\]; its model makes latents"):
        build_stage(codes, checkpoint, DEPLOYMENT)
    latents = replace(LATENT_TALKER, factory=TALKER.factory)
    with pytest.raises(ConfigError, match=r"ports \['latents'\]; its model makes codes"):
        build_stage(latents, checkpoint, DEPLOYMENT)
