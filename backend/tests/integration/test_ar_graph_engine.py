"""The engine without vLLM beside vLLM's: the same frames, called, padded and replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cantata.config import ArDeployment, SamplingDefaults
from cantata.contract.data.errors import ConfigError, RequestFailed
from cantata.contract.data.request import SamplingOptions
from cantata.contract.model.plain_talker import BackboneKernels, PlainTalkerOptions
from cantata.contract.process.stage import Stage
from cantata.stages.ar import build_stage
from cantata.stages.ar.graph_engine import GraphEngine
from cantata.stages.ar.stage import ArStage
from cantata.stages.ar.step_graphs import StepShapes
from cantata.stages.ar.torch_kernels import TorchKernels
from cantata.stages.ar.vllm_kernels import load_kernels
from replayed_operators import replayed_operators
from tiny_talker.checkpoint import TEXT_VOCAB, save_tiny_checkpoint
from tiny_talker.driving import TALKER, Frames, Listener, speak, speak_alone, varied_payloads
from tiny_talker.inputs import TinyInput, TinyText
from tiny_talker.plain import load_plain_talker

pytestmark = pytest.mark.vllm

CPU = torch.device("cpu")
DEPLOYMENT = ArDeployment(
    slots=6,
    max_model_len=320,
    max_num_batched_tokens=64,
    sampling=SamplingDefaults(temperature=0.7, top_k=5, repetition_penalty=1.1),
)


def requests() -> dict[str, TinyInput]:
    """All kinds of sampling and of prompts; one is longer than the least that attention reads, and
    one makes more frames than random numbers are drawn for at once."""
    made = {
        **varied_payloads(8),
        "long": TinyInput([5, 4, 3] * 85, max_frames=20, min_frames=20),
        "drawn again": TinyInput([8, 1], max_frames=150, min_frames=150),
        "penalized": TinyInput(
            [1, 2, 3],
            max_frames=30,
            min_frames=30,
            sampling=SamplingOptions(
                seed=4, temperature=0.8, repetition_penalty=1.5, residual_repetition_penalty=1.3
            ),
        ),
        "often used": TinyInput(
            [9],
            max_frames=30,
            min_frames=30,
            sampling=SamplingOptions(presence_penalty=0.3, frequency_penalty=0.2),
        ),
    }
    greedy = SamplingOptions(temperature=0.0, repetition_penalty=1.0)
    return {**made, "greedy": TinyInput([6, 7], max_frames=12, sampling=greedy)}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny_talker")
    save_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="module")
def expected(checkpoint: Path) -> Mapping[str, Frames]:
    """By vLLM's engine, each alone."""
    stage = build_stage(TALKER, checkpoint, DEPLOYMENT)
    frames = speak_alone(stage, requests())
    stage.close()
    return frames


def make_engine(
    checkpoint: Path, kernels: BackboneKernels, shapes: StepShapes | None = None
) -> GraphEngine:
    options = PlainTalkerOptions(kernels, CPU, torch.float32, DEPLOYMENT.max_model_len)
    return GraphEngine(load_plain_talker(checkpoint, options), DEPLOYMENT, CPU, shapes)


def find_kernels(name: str) -> BackboneKernels:
    if name == "torch":
        return TorchKernels(torch.float32)
    found = load_kernels()
    assert found is not None
    return found


@pytest.fixture(
    scope="module",
    params=[
        *("vllm called", "vllm padded"),
        *("torch called", "torch padded", "torch ahead", "torch replayed"),
    ],
)
def stage(checkpoint: Path, request: pytest.FixtureRequest) -> Stage:
    """As on a CPU; with the shapes of a GPU; a step ahead, too; with replays of recorded operators.
    The plan of vLLM's attention has addresses in it, so that cannot be replayed."""
    kernels, _, how = request.param.partition(" ")
    shapes = StepShapes(DEPLOYMENT.slots, DEPLOYMENT.max_model_len)
    engine = make_engine(checkpoint, find_kernels(kernels), None if how == "called" else shapes)
    engine._is_ahead = how == "ahead"
    if how == "replayed":
        with replayed_operators() as recorded:
            engine.record(DEPLOYMENT.sampling)
        assert all(len(operators) > 100 for operators in recorded)
        # From here on no step may be called: all shapes of all kinds are recorded.
        engine._graphs._decode.run = engine._graphs._prefill.run = _refuse
    return ArStage(engine, DEPLOYMENT)


def _refuse(*given: object) -> torch.Tensor:
    raise AssertionError("not a replay")


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("every", [0, 3])
def test_the_frames_are_those_of_vllm_s_engine(
    stage: Stage, expected: Mapping[str, Frames], every: int
) -> None:
    found = speak(stage, requests(), every)
    for name, frames in expected.items():
        np.testing.assert_array_equal(found[name], frames, err_msg=name)
    assert set(stage.get_counts().values()) == {0}


@pytest.mark.thorough(every=3)
def test_lanes_that_change_hands_mix_nothing_up(
    stage: Stage, expected: Mapping[str, Frames]
) -> None:
    """Aborts in random order, and texts that wait: lanes move, and some of a batch do not step."""
    random = np.random.default_rng(0)
    names = [name for name in expected if name != "long"]
    listener, opened = Listener(), 0
    for round_ in range(6):
        chosen = [f"{name}/{round_}" for name in random.permutation(names)[:4]]
        for name in chosen:
            stage.add(name, requests()[name.partition("/")[0]], batch=False)
        waits = f"waits/{round_}"
        stage.add(waits, TinyInput([1, 2], 40, 40, track=True, open=True), batch=False)
        for _ in range(int(random.integers(1, 9))):
            listener.step(stage)
        gone = chosen[int(random.integers(4))]
        stage.abort(gone)
        stage.extend(waits, TinyText([3, 4]), final=False)
        while stage.has_work():
            listener.step(stage)
        opened += len(listener.frames(waits))
        stage.abort(waits)
        for name in set(chosen) - {gone}:
            frames = listener.frames(name)
            np.testing.assert_array_equal(frames, expected[name.partition("/")[0]], err_msg=name)
    assert opened == 6 * 4
    assert set(stage.get_counts().values()) == {0}


def test_what_code_0_is_not_drawn_by_is_refused(checkpoint: Path) -> None:
    kernels = TorchKernels(torch.float32)
    stage = ArStage(make_engine(checkpoint, kernels), DEPLOYMENT)
    asks = TinyInput([1], 3, sampling=SamplingOptions(logprobs=True, code_bias=((1, 2.0),)))
    with pytest.raises(RequestFailed, match=r"a bias and log probabilities.*'engine: vllm'"):
        stage.add("asks", asks, batch=False)
    assert set(stage.get_counts().values()) == {0}


def test_a_talker_that_it_cannot_run_is_refused(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiny_talker.plain.PlainTinyTalker.decides_stop", True)
    with pytest.raises(ConfigError, match="no talker with decides_stop"):
        make_engine(checkpoint, TorchKernels(torch.float32))
    other = replace(TALKER, plain=None)
    with pytest.raises(ConfigError, match="runs on 'vllm' alone"):
        build_stage(other, checkpoint, DEPLOYMENT.model_copy(update={"engine": "graphs"}))


def test_too_little_memory_is_said_with_what_is_needed(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cantata.stages.ar.graph_stage.free_bytes", lambda device: 1 << 10)
    with pytest.raises(ConfigError, match=r"keys and values .*, requests' rows and frames "):
        build_stage(TALKER, checkpoint, DEPLOYMENT.model_copy(update={"engine": "graphs"}))


def test_bfloat16_is_near_float32(checkpoint: Path) -> None:
    """As a GPU has it: not the same codes, but scores that are close."""
    kernels = TorchKernels(torch.bfloat16)
    scores = []
    for dtype, used in ((torch.float32, TorchKernels(torch.float32)), (torch.bfloat16, kernels)):
        options = PlainTalkerOptions(used, CPU, dtype, 128)
        talker = load_plain_talker(checkpoint, options)
        memory = talker.attention(1, 128)
        memory.plan_prompts(torch.zeros(1, dtype=torch.int64), 9)  # type: ignore[attr-defined]
        rows = talker.text_embedding(torch.arange(9) % TEXT_VOCAB)
        hidden = talker.forward_rows(rows.to(dtype), torch.arange(9), memory)
        scores.append(talker.compute_logits(hidden).float())
    size, apart = scores[0].norm(), (scores[0] - scores[1]).norm()
    assert 0 < apart < 0.05 * size
