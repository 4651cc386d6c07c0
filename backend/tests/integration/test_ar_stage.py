"""The AR stage on a tiny random talker: one engine, many requests, no difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cantata.config import ArDeployment, SamplingDefaults
from cantata.contract.data.errors import (
    ConfigError,
    ContextFull,
    InvalidRequest,
    Overloaded,
    ProtocolViolation,
    RequestFailed,
)
from cantata.contract.data.request import SamplingOptions
from cantata.contract.process.stage import Stage
from cantata.stages.ar import build_stage
from tiny_talker.checkpoint import END_CODE, MAX_POSITIONS, save_tiny_checkpoint
from tiny_talker.driving import TALKER, Listener, preempt_all, speak, speak_alone, varied_payloads
from tiny_talker.inputs import TinyInput, TinyText

pytestmark = pytest.mark.vllm

DEPLOYMENT = ArDeployment(
    slots=8,
    max_model_len=128,
    max_num_batched_tokens=256,
    sampling=SamplingDefaults(temperature=0.7, top_k=5),
)
REQUESTS = varied_payloads(8)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny_talker")
    save_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="module", params=["vllm", "graphs"])
def engine(checkpoint: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """Both of them keep the stage's promises."""
    deployment = DEPLOYMENT.model_copy(update={"engine": request.param})
    stage = build_stage(TALKER, checkpoint, deployment)
    yield stage
    stage.close()


vllm_alone = pytest.mark.parametrize("engine", ["vllm"], indirect=True)
"""Of a test of what the other engine does not have."""


@pytest.fixture
def stage(engine: Stage) -> Iterator[Stage]:
    yield engine
    assert not engine.has_work()
    assert set(engine.get_counts().values()) == {0}


@pytest.fixture(scope="module")
def alone(engine: Stage) -> dict[str, np.ndarray]:
    return speak_alone(engine, REQUESTS)


def one(stage: Stage, **options: Any) -> np.ndarray:
    return speak(stage, {"one": replace(TinyInput([3, 1, 4, 1, 5], 24), **options)})["one"]


def test_capacity_is_the_deployment_s(stage: Stage) -> None:
    assert stage.capacity.slots == 8
    assert stage.capacity.frame_period_s == 0.08


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("every", [0, 1, 5])
def test_in_company_equals_alone(stage: Stage, alone: dict[str, np.ndarray], every: int) -> None:
    together = speak(stage, REQUESTS, every=every)
    for request_id, frames in alone.items():
        np.testing.assert_array_equal(together[request_id], frames, err_msg=request_id)


def test_hidden_states_and_scores_in_company_are_those_alone_to_the_bit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[bytes] = set()

    def remember(rows: torch.Tensor) -> None:
        seen.update(row.numpy().tobytes() for row in rows)

    talker = stage._engine.talker  # type: ignore[attr-defined]
    make_frames, compute_logits = talker.make_frames, talker.compute_logits

    def making(hidden: torch.Tensor, *rest: Any) -> torch.Tensor:
        remember(hidden)
        return make_frames(hidden, *rest)  # type: ignore[no-any-return]

    def scoring(hidden: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = compute_logits(hidden)
        remember(scores)
        return scores

    monkeypatch.setattr(talker, "make_frames", making)
    monkeypatch.setattr(talker, "compute_logits", scoring)
    speak_alone(stage, REQUESTS)
    alone, seen = seen, set()
    speak(stage, REQUESTS)
    assert len(alone) > 300
    assert seen == alone


def test_abort_half_way_leaves_the_others_as_they_are(
    stage: Stage, alone: dict[str, np.ndarray]
) -> None:
    listener = Listener()
    for request_id, payload in REQUESTS.items():
        stage.add(request_id, payload, batch=False)
    for _ in range(6):
        listener.step(stage)
    victims = [name for name in REQUESTS if not listener.finished(name)][:2]
    for request_id in victims:
        stage.abort(request_id)
    # An id may be used again at once, by a request of another kind.
    stage.add(victims[0], TinyInput(text=[7], max_frames=5, min_frames=5), batch=True)
    before = len(listener.chunks.pop(victims[0]))
    while stage.has_work():
        listener.step(stage)
    assert 0 < before <= 6
    assert len(listener.frames(victims[0])) == 5
    assert not listener.finished(victims[1])
    for request_id in REQUESTS.keys() - victims:
        np.testing.assert_array_equal(listener.frames(request_id), alone[request_id])


@vllm_alone
def test_recompute_after_preemption_changes_nothing(
    stage: Stage, alone: dict[str, np.ndarray]
) -> None:
    listener = Listener()
    for request_id, payload in REQUESTS.items():
        stage.add(request_id, payload, batch=False)
    for step in range(200):
        if not stage.has_work():
            break
        if step in (1, 9, 10):
            preempt_all(stage)
        listener.step(stage)
    for request_id, frames in alone.items():
        np.testing.assert_array_equal(listener.frames(request_id), frames, err_msg=request_id)


def test_same_seed_same_frames_other_seed_other_frames(stage: Stage) -> None:
    first, again, other = (
        one(stage, min_frames=24, sampling=SamplingOptions(seed=seed, temperature=1.0))
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.5


def test_greedy_ignores_the_seed(stage: Stage) -> None:
    first, other = (one(stage, sampling=SamplingOptions(seed=s, temperature=0.0)) for s in (1, 2))
    np.testing.assert_array_equal(first, other)


def test_what_a_request_leaves_open_is_the_deployment_s(stage: Stage) -> None:
    explicit = SamplingOptions(seed=5, temperature=0.7, top_k=5, top_p=1.0)
    np.testing.assert_array_equal(
        one(stage, sampling=SamplingOptions(seed=5)), one(stage, sampling=explicit)
    )


def test_rows_go_on_beside_the_frames(stage: Stage) -> None:
    track, other_end = (
        one(
            stage,
            text=[1, 2, 3, 4, 5, end],
            track=True,
            min_frames=24,
            sampling=SamplingOptions(seed=1),
        )
        for end in (6, 7)
    )
    np.testing.assert_array_equal(track[:5], other_end[:5])
    assert (track[5:] != other_end[5:]).any()


def test_words_leave_with_the_first_frame(stage: Stage) -> None:
    payload = TinyInput(text=[1, 2, 3], max_frames=6, min_frames=6, words=2)
    listener = Listener()
    stage.add("told", payload, batch=False)
    while stage.has_work():
        listener.step(stage)
    first, *others = listener.chunks["told"]
    assert [(word.index, word.start_s) for word in first.payload.words] == [(0, 0.0), (1, 0.24)]
    assert not any(chunk.payload.words for chunk in others)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_short_prompts(stage: Stage, length: int) -> None:
    assert len(one(stage, text=[9] * length, max_frames=3, min_frames=3)) == 3


def test_nothing_is_held_after_the_last_chunk_or_abort(stage: Stage) -> None:
    stage.add("ends", TinyInput(text=[1], max_frames=2, min_frames=2), batch=False)
    stage.step()
    counts = stage.get_counts()
    assert len(counts) > 2
    assert set(counts.values()) == {1}
    assert stage.step().chunks[0].final
    assert set(stage.get_counts().values()) == {0}
    stage.add("is left", TinyInput(text=[1], max_frames=9), batch=False)
    stage.step()
    stage.abort("is left")
    assert set(stage.get_counts().values()) == {0}
    assert not stage.has_work()


def test_end_code_ends_with_an_empty_chunk(stage: Stage) -> None:
    ended = 0
    for seed in range(12):
        listener = Listener()
        payload = TinyInput(text=[seed], max_frames=60, sampling=SamplingOptions(seed=seed))
        stage.add("one", payload, batch=False)
        while stage.has_work():
            listener.step(stage)
        frames = listener.frames("one")
        assert (frames[:, 0] != END_CODE).all()
        if len(frames) < 60:
            ended += 1
            assert listener.chunks["one"][-1].payload.values.shape == (0, 4)
    assert ended


def test_min_frames_holds_the_end_code_back(stage: Stage) -> None:
    for seed in range(4):
        frames = one(stage, max_frames=40, min_frames=40, sampling=SamplingOptions(seed=seed))
        assert len(frames) == 40
        assert (frames[:, 0] != END_CODE).all()


def test_a_bad_payload_is_rejected_alone(stage: Stage, alone: dict[str, np.ndarray]) -> None:
    stage.add("r1", REQUESTS["r1"], batch=False)
    listener = Listener()
    listener.step(stage)
    with pytest.raises(InvalidRequest, match="nothing to say"):
        stage.add("empty", TinyInput(text=[], max_frames=3), batch=False)
    with pytest.raises(RequestFailed, match="could not be encoded"):
        stage.add("unknown_id", TinyInput(text=[4_000], max_frames=3), batch=False)
    with pytest.raises(RequestFailed, match="AttributeError"):
        stage.add("of another stage", TinyText([1]), batch=False)
    with pytest.raises(RequestFailed, match="TypeError"):
        stage.add(
            "seed",
            TinyInput(text=[1], max_frames=3, sampling=SamplingOptions(seed="x")),  # type: ignore[arg-type]
            batch=False,
        )
    with pytest.raises(RequestFailed, match="1 positions, 1 rows and 0 frames"):
        stage.add("no frames", TinyInput(text=[1], max_frames=0), batch=False)
    with pytest.raises(RequestFailed, match="could not be encoded: AttributeError"):
        stage.add("none", None, batch=False)
    with pytest.raises(InvalidRequest, match="130 positions, more than the 128"):
        stage.add("long", TinyInput(text=[1], max_frames=129), batch=False)
    with pytest.raises(ProtocolViolation, match="already held"):
        stage.add("r1", REQUESTS["r1"], batch=False)
    while stage.has_work():
        listener.step(stage)
    np.testing.assert_array_equal(listener.frames("r1"), alone["r1"])


def test_more_requests_than_slots_are_rejected(stage: Stage) -> None:
    names = [str(number) for number in range(stage.capacity.slots)]
    for name in names:
        stage.add(name, TinyInput(text=[1], max_frames=4), batch=False)
    with pytest.raises(Overloaded):
        stage.add("one more", TinyInput(text=[1], max_frames=4), batch=False)
    for name in names:
        stage.abort(name)
    stage.abort("never heard of")


@pytest.mark.parametrize(
    ("factory", "change", "message"),
    [
        ("tiny_talker.talker:Nobody", {}, "no talker class"),
        ("tiny_talker.nowhere:TinyTalker", {}, "no talker class"),
        (TALKER.factory, {"slots": 300}, "max_num_batched_tokens"),
        (TALKER.factory, {"device": "cuda"}, "the installed vLLM is for 'cpu'"),
    ],
)
@vllm_alone
def test_what_cannot_be_served(
    checkpoint: Path, engine: Stage, factory: str, change: dict[str, Any], message: str
) -> None:
    spec = replace(TALKER, factory=factory)
    with pytest.raises(ConfigError, match=message):
        build_stage(spec, checkpoint, DEPLOYMENT.model_copy(update=change))


def test_no_request_has_more_positions_than_the_checkpoint(checkpoint: Path) -> None:
    stage = build_stage(TALKER, checkpoint, DEPLOYMENT.model_copy(update={"max_model_len": 1024}))
    try:
        stage.add("long", TinyInput([3, 1, 4], MAX_POSITIONS - 10), batch=False)
        with pytest.raises(ContextFull, match=f"more than the {MAX_POSITIONS} of this"):
            stage.add("too long", TinyInput([3, 1, 4], MAX_POSITIONS), batch=False)
        stage.abort("long")
    finally:
        stage.close()


def test_a_size_of_heads_without_a_kernel_is_named() -> None:
    from cantata.stages.ar.cpu_kernels import check_head_size  # imports vLLM

    check_head_size(64, torch.float32, 32)
    with pytest.raises(ConfigError, match="heads of 16 channels: vLLM has no attention"):
        check_head_size(16, torch.float32, 32)


def test_a_talker_that_does_not_fit_is_refused_with_what_it_needs(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cantata.stages.ar.served_model.free_bytes", lambda device: 1 << 10)
    needs = r"are needed on 'cpu' \(weights .*, keys and values .*, requests' rows and frames .*\)"
    with pytest.raises(ConfigError, match=f"{needs}, .* free; lower slots, max_model_len"):
        build_stage(TALKER, checkpoint, DEPLOYMENT)
