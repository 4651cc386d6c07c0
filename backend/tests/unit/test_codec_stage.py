"""The codec stage over a decoder whose samples can be written down by hand."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch

from cantata.config import CodecDeployment
from cantata.contract.data.chunks import Chunk, Payload, Pcm, Rows, WordTiming
from cantata.contract.data.errors import ConfigError, RequestFailed
from cantata.contract.model.pipeline import StageKind, StageSpec
from cantata.stages.codec import CodecStage
from cantata.stages.codec.stage import build_stage
from running_sum import SAMPLES_PER_FRAME, RunningSumDecoder
from stage_chunks import codes_chunk, pcm_chunk
from tiny_talker.checkpoint import LATENT_SIZE
from tiny_talker.decoder import SCALE, LatentSumDecoder


def expected(codes: np.ndarray) -> np.ndarray:
    totals = codes.sum(-1).cumsum().astype(np.float32)
    return np.repeat(totals, SAMPLES_PER_FRAME)[:, None]


def make_stage(**settings: float) -> CodecStage:
    deployment = CodecDeployment.model_validate({"slots": 4, "credit_s": 100.0, **settings})
    return CodecStage(RunningSumDecoder(), deployment, clock=lambda: 0.0)


def frames(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 50, (count, 2), dtype=np.int32)


def run(stage: CodecStage) -> list[Chunk[Payload]]:
    chunks: list[Chunk[Payload]] = []
    while stage.has_work():
        result = stage.step()
        assert not result.failures
        chunks.extend(result.chunks)
    return chunks


def pcm(chunks: list[Chunk[Payload]], request_id: str) -> np.ndarray:
    own = [c for c in chunks if isinstance(c.payload, Pcm) and c.request_id == request_id]
    assert [c.index for c in own] == list(range(len(own)))
    assert [c.final for c in own] == [False] * (len(own) - 1) + [True]
    return np.concatenate([cast(Pcm, c.payload).samples for c in own])


def test_streams_share_batches_and_keep_their_own_samples() -> None:
    stage = make_stage()
    codes = {f"r{i}": frames(5 + i, seed=i) for i in range(4)}
    for request_id in codes:
        stage.add(request_id, None, batch=False)
    chunks: list[Chunk[Payload]] = []
    for t in range(8):
        arriving = [
            codes_chunk(i, t, c[t : t + 1], final=t == len(c) - 1)
            for i, c in codes.items()
            if t < len(c)
        ]
        stage.receive(arriving)
        if t % 3 == 2:  # let frames pile up, so that chunks of several frames are decoded too
            chunks.extend(run(stage))
    chunks.extend(run(stage))
    for request_id, request_codes in codes.items():
        np.testing.assert_array_equal(pcm(chunks, request_id), expected(request_codes))
    assert set(stage.get_counts().values()) == {0}


def test_who_plays_twice_as_fast_runs_dry_twice_as_soon() -> None:
    stage = make_stage(max_batch_frames=1, max_chunk_frames=1)
    stage.add("usual", None, batch=False)
    stage.add("fast", None, batch=False, stretch=2.0)
    stage.receive([codes_chunk(i, 0, frames(6, seed=1), True) for i in ("usual", "fast")])
    order = [c.request_id for c in run(stage)]
    assert order[:2] == ["usual", "fast"], "first chunks go first"
    assert order[2:5] == ["fast", "usual", "fast"]


def test_a_late_empty_final_chunk_ends_the_request() -> None:
    stage = make_stage()
    stage.add("a", None, batch=False)
    codes = frames(2, seed=1)
    stage.receive([codes_chunk("a", 0, codes, False)])
    chunks = run(stage)
    assert not stage.has_work()
    stage.receive([codes_chunk("a", 1, codes[:0], True)])
    chunks.extend(run(stage))
    np.testing.assert_array_equal(pcm(chunks, "a"), expected(codes))
    assert set(stage.get_counts().values()) == {0}


def test_words_leave_with_the_next_samples_and_none_is_lost() -> None:
    stage = make_stage(credit_s=1.0)  # 8 samples: two frames
    first, second, last = (WordTiming(i, i / 2, i / 2 + 0.4) for i in range(3))
    codes = frames(5, seed=1)
    stage.add("a", None, batch=False)
    stage.receive([codes_chunk("a", 0, codes[:4], False, (first,))])
    chunks = run(stage)
    assert [c.payload.words for c in chunks if isinstance(c.payload, Pcm)] == [(first,), ()]
    stage.receive([codes_chunk("a", 1, codes[4:], False, (second,))])  # no credit: it waits
    assert run(stage) == []
    stage.credit("a", 100)
    chunks = run(stage)
    assert [c.payload.words for c in chunks if isinstance(c.payload, Pcm)] == [(second,), (), ()]
    stage.receive([codes_chunk("a", 2, codes[:0], True, (last,))])
    (end,) = run(stage)
    assert isinstance(end.payload, Pcm)
    assert (end.payload.words, len(end.payload.samples), end.final) == ((last,), 0, True)


def test_context_is_decoded_at_once_and_not_heard() -> None:
    stage = make_stage(credit_s=1.0, max_chunk_frames=8)  # 8 samples: two frames
    context, codes = frames(11, seed=2), frames(3, seed=3)
    stage.add("a", None, batch=False)
    begun = np.concatenate([context, codes[:1]])
    stage.receive([codes_chunk("a", 0, begun, False, context_frames=len(context))])
    chunks = run(stage)
    stage.receive([codes_chunk("a", 1, codes[1:], True)])
    chunks += run(stage)
    stage.credit("a", 100)  # context costs no credit, what is heard does
    assert [len(c.payload.samples) for c in chunks if isinstance(c.payload, Pcm)] == [4, 4]
    chunks += run(stage)
    whole = expected(np.concatenate([context, codes]))
    np.testing.assert_array_equal(pcm(chunks, "a"), whole[len(context) * SAMPLES_PER_FRAME :])
    assert set(stage.get_counts().values()) == {0}


def test_context_alone_ends_without_a_sample() -> None:
    stage = make_stage()
    stage.add("a", None, batch=False)
    stage.receive([codes_chunk("a", 0, frames(5, seed=2), True, context_frames=5)])
    (end,) = run(stage)
    assert isinstance(end.payload, Pcm)
    assert (len(end.payload.samples), end.final) == (0, True)


def test_only_a_request_s_first_frames_may_be_context() -> None:
    stage = make_stage()
    stage.add("a", None, batch=False)
    stage.receive([codes_chunk("a", 0, frames(1, 0), False)])
    stage.receive([codes_chunk("a", 1, frames(1, 0), False, context_frames=1)])
    ((_, error),) = stage.step().failures
    assert "at most 0 context frames, got 1" in str(error)


def test_a_listener_without_credit_stops_its_own_decoding_only() -> None:
    stage = make_stage(credit_s=1.0)  # 8 samples: two frames
    stage.add("slow", None, batch=False)
    stage.add("live", None, batch=False)
    slow, live = frames(6, seed=2), frames(2, seed=3)
    stage.receive([codes_chunk("slow", 0, slow, True), codes_chunk("live", 0, live, True)])
    chunks = run(stage)
    np.testing.assert_array_equal(pcm(chunks, "live"), expected(live))
    assert stage.get_counts() == {"requests": 1, "queued_frames": 4}
    stage.credit("slow", 8)
    chunks.extend(run(stage))
    assert stage.get_counts()["queued_frames"] == 2
    stage.credit("slow", 8)
    chunks.extend(run(stage))
    np.testing.assert_array_equal(pcm(chunks, "slow"), expected(slow))


def test_abort_frees_the_slot_and_late_chunks_are_dropped() -> None:
    stage = make_stage()
    for number in range(4):
        stage.add(str(number), None, batch=False)
    with pytest.raises(RequestFailed, match="no free slot"):
        stage.add("too many", None, batch=False)
    stage.abort("2")
    stage.abort("never seen")
    stage.receive([codes_chunk("2", 0, frames(1, 0), False)])
    assert not stage.has_work()
    stage.add("next", None, batch=False)
    codes = frames(3, seed=9)
    stage.receive([codes_chunk("next", 0, codes, True)])
    np.testing.assert_array_equal(pcm(run(stage), "next"), expected(codes))


@pytest.mark.parametrize(
    ("chunk", "problem"),
    [
        (codes_chunk("bad", 1, frames(1, 0), False), "expected chunk 0, got 1"),
        (codes_chunk("bad", 0, np.zeros((1, 3), np.int32), False), r"expected \[T, 2\] codes"),
        (codes_chunk("bad", 0, np.full((1, 2), 100, np.int32), False), "codes must be in 0..99"),
        (pcm_chunk("bad", 0, np.zeros((4, 1), np.float32), False), "expected Codes, got Pcm"),
        (codes_chunk("bad", 0, np.full((1, 2), -1, np.int32), False), "codes must be in 0..99"),
        (
            codes_chunk("bad", 0, frames(2, 0), False, context_frames=3),
            "at most 2 context frames, got 3",
        ),
        (codes_chunk("bad", 0, frames(2, 0), False, context_frames=-1), "context frames, got -1"),
    ],
)
def test_a_malformed_chunk_fails_its_own_request_only(chunk: Chunk[Payload], problem: str) -> None:
    stage = make_stage()
    stage.add("bad", None, batch=False)
    stage.add("good", None, batch=False)
    codes = frames(2, seed=4)
    stage.receive([chunk, codes_chunk("good", 0, codes, True)])
    result = stage.step()
    ((request_id, error),) = result.failures
    assert request_id == "bad"
    assert isinstance(error, RequestFailed)
    with pytest.raises(RequestFailed, match=problem):
        raise error
    rest = [*result.chunks, *run(stage)]
    np.testing.assert_array_equal(pcm(rest, "good"), expected(codes))
    assert stage.get_counts()["requests"] == 0


LATENTS = np.random.default_rng(0).normal(size=(5, LATENT_SIZE)).astype(np.float32)


def latents_chunk(index: int, values: np.ndarray, *, context_frames: int = 0) -> Chunk[Rows]:
    return Chunk("r", "latents", index, Rows(values, context_frames), final=True)


def test_latents_are_decoded_like_codes() -> None:
    stage = CodecStage(LatentSumDecoder(), CodecDeployment(credit_s=100.0), clock=lambda: 0.0)
    stage.add("r", None, batch=False)
    stage.receive([latents_chunk(0, LATENTS, context_frames=2)])
    heard = pcm(run(stage), "r")[:: LatentSumDecoder.samples_per_frame, 0]
    totals = np.round(1000 * LATENTS).astype(int).sum(-1).cumsum() % 2**13
    np.testing.assert_array_equal(heard, totals[2:] * np.float32(SCALE))


@pytest.mark.parametrize(
    ("chunk", "problem"),
    [
        (codes_chunk("r", 0, frames(1, 0), False), "expected Rows, got Codes"),
        (latents_chunk(0, LATENTS[:, 1:]), r"expected \[T, 6\] latents, got \[5, 5\]"),
        (latents_chunk(0, LATENTS * np.float32(np.inf)), "latents must be finite"),
        (latents_chunk(0, LATENTS, context_frames=6), "at most 5 context frames, got 6"),
        (latents_chunk(1, LATENTS), "expected chunk 0, got 1"),
    ],
)
def test_malformed_latents_are_named(chunk: Chunk[Payload], problem: str) -> None:
    stage = CodecStage(LatentSumDecoder(), CodecDeployment(), clock=lambda: 0.0)
    stage.add("r", None, batch=False)
    stage.receive([chunk])
    ((_, error),) = stage.step().failures
    with pytest.raises(RequestFailed, match=problem):
        raise error
    assert stage.get_counts()["requests"] == 0


def test_only_decoders_of_codes_run_in_windows(tmp_path: Path) -> None:
    window = {"chunk_frames": 4, "context_frames": 2}
    deployment = CodecDeployment.model_validate({"slots": 1, "window": window})
    spec = StageSpec("decoder", StageKind.CODEC, "tiny_talker.decoder:load_latent_decoder")
    with pytest.raises(ConfigError, match="'decoder': only decoders of codes run in windows"):
        build_stage(spec, tmp_path, deployment)


def test_capacity_tells_what_the_api_needs(tmp_path: Path) -> None:
    capacity = make_stage().capacity
    assert (capacity.slots, capacity.sample_rate, capacity.channels) == (4, 8, 1)
    assert capacity.frame_period_s == 0.5
    assert capacity.credit_samples == 800


@pytest.mark.parametrize(("shape", "found"), [((), r"\[1, 4\]"), ((2,), r"\[1, 4, 2\]")])
def test_a_decoder_of_another_shape_is_named(shape: tuple[int, ...], found: str) -> None:
    class OtherShape(RunningSumDecoder):
        def decode(
            self, state: torch.Tensor, slots: torch.Tensor, codes: torch.Tensor
        ) -> torch.Tensor:
            samples = super().decode(state, slots, codes)[..., 0]
            return samples[..., None].expand(*samples.shape, *shape) if shape else samples

    stage = CodecStage(OtherShape(), CodecDeployment(), clock=lambda: 0.0)
    stage.add("r", None, batch=False)
    stage.receive([codes_chunk("r", 0, frames(1, 0), True)])
    with pytest.raises(RuntimeError, match=rf"made {found} samples; it must be \[B, N, 1\]"):
        stage.step()
