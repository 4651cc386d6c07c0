"""The codec stage over a decoder that sees blocks of frames and some ahead of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch

from cantata.config import CodecDeployment
from cantata.contract.data.chunks import Chunk, Payload, Pcm
from cantata.contract.data.errors import ConfigError, InvalidRequest, RequestFailed
from cantata.contract.model.codec import BlockDecoder
from cantata.contract.model.pipeline import StageKind, StageSpec
from cantata.stages.codec import CodecStage, build_stage
from stage_chunks import codes_chunk

BLOCK, AHEAD, SAMPLES_PER_FRAME = 4, 2, 2
HIDDEN_FAULT = 99
"""Inputs that the decoder cannot take, for a reason that it does not foresee."""


@dataclass(frozen=True, slots=True)
class Level:
    """What the decoder is conditioned on."""

    value: int


@dataclass(slots=True)
class Slot:
    """One stream: its level, and the sound that leaves with the next block."""

    level: int = 0
    held: torch.Tensor = field(default_factory=lambda: torch.zeros(0, 1))


class BlockSums(BlockDecoder):
    """A sample is its code, plus 100 for each code ahead of its block, plus the stream's level.
    The last sample of a block leaves with the next block."""

    sample_rate, channels, samples_per_frame = 8, 1, SAMPLES_PER_FRAME
    num_codebooks, codebook_size = 1, 100
    block_frames, ahead_frames = BLOCK, AHEAD

    def __init__(self) -> None:
        self.batches: list[int] = []

    def init_state(self, slots: int) -> list[Slot]:
        return [Slot() for _ in range(slots)]

    def reset(self, state: list[Slot], slots: torch.Tensor) -> None:
        for slot in slots.tolist():
            state[slot] = Slot()

    def condition(self, state: list[Slot], slot: int, inputs: Level | None) -> None:
        if inputs is None:
            raise InvalidRequest("no level", "level")
        assert inputs.value != HIDDEN_FAULT
        state[slot].level = inputs.value

    def decode_blocks(
        self,
        state: list[Slot],
        slots: torch.Tensor,
        codes: Sequence[torch.Tensor],
        last: Sequence[bool],
    ) -> list[torch.Tensor]:
        self.batches.append(len(codes))
        made = []
        for slot, row, ends in zip(slots.tolist(), codes, last, strict=True):
            stream, block = state[slot], row[:BLOCK]
            values = block.float() + 100 * len(row[BLOCK:]) + stream.level
            sound = torch.cat([stream.held, values.repeat_interleave(SAMPLES_PER_FRAME, dim=0)])
            kept = len(sound) if ends else -1
            stream.held = sound[len(sound) if ends else -1 :]
            made.append(sound[:kept])
        return made


def expected(codes: np.ndarray, level: int) -> np.ndarray:
    """What is heard of [T, 1] codes."""
    total = len(codes)
    ahead = [min(AHEAD, max(0, total - (t // BLOCK + 1) * BLOCK)) for t in range(total)]
    values = codes[:, 0] + 100 * np.array(ahead) + level
    return np.repeat(values, SAMPLES_PER_FRAME)[:, None].astype(np.float32)


def make_stage(**settings: float) -> tuple[CodecStage, BlockSums]:
    decoder = BlockSums()
    deployment = CodecDeployment.model_validate({"slots": 3, "credit_s": 100.0, **settings})
    return CodecStage(decoder, deployment, clock=lambda: 0.0), decoder


def frames(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 50, (count, 1), dtype=np.int32)


def run(stage: CodecStage) -> list[Chunk[Payload]]:
    chunks: list[Chunk[Payload]] = []
    while stage.has_work():
        result = stage.step()
        assert not result.failures
        chunks.extend(result.chunks)
    return chunks


def heard(chunks: list[Chunk[Payload]], request_id: str) -> np.ndarray:
    own = [c for c in chunks if c.request_id == request_id]
    assert [c.index for c in own] == list(range(len(own)))
    assert [c.final for c in own] == [False] * (len(own) - 1) + [True]
    parts = [c.payload.samples for c in own if isinstance(c.payload, Pcm)]
    assert all(map(len, parts[:-1]))
    return np.concatenate(parts)


@pytest.mark.parametrize("late_end", [False, True])
@pytest.mark.parametrize("at_once", [1, 3, 5, 50])
@pytest.mark.parametrize("total", [1, 3, 4, 5, 6, 7, 10, 13])
def test_a_stream_is_cut_by_its_frames_alone(total: int, at_once: int, late_end: bool) -> None:
    stage, _ = make_stage()
    stage.add("a", Level(7), batch=False)
    codes, chunks, index = frames(total), [], 0
    for index, start in enumerate(range(0, total, at_once)):
        final = not late_end and start + at_once >= total
        stage.receive([codes_chunk("a", index, codes[start : start + at_once], final)])
        chunks += run(stage)
    if late_end:
        stage.receive([codes_chunk("a", index + 1, codes[:0], True)])
        chunks += run(stage)
    np.testing.assert_array_equal(heard(chunks, "a"), expected(codes, 7))
    assert set(stage.get_counts().values()) == {0}


def test_a_block_is_heard_as_soon_as_what_is_ahead_of_it_is_there() -> None:
    stage, _ = make_stage()
    stage.add("a", Level(0), batch=False)
    codes = frames(12)
    stage.receive([codes_chunk("a", 0, codes[: BLOCK + AHEAD - 1], False)])
    assert not stage.has_work()
    stage.receive([codes_chunk("a", 1, codes[BLOCK + AHEAD - 1 : BLOCK + AHEAD], False)])
    (chunk,) = run(stage)
    assert isinstance(chunk.payload, Pcm)
    assert len(chunk.payload.samples) == BLOCK * SAMPLES_PER_FRAME - 1


def test_streams_share_batches_and_keep_their_own_samples() -> None:
    stage, decoder = make_stage(max_batch_frames=2 * BLOCK)
    streams = {f"r{i}": frames(6 + 5 * i, seed=i) for i in range(3)}
    for level, request_id in enumerate(streams):
        stage.add(request_id, Level(level), batch=True)
    stage.receive([codes_chunk(i, 0, codes, True) for i, codes in streams.items()])
    chunks = run(stage)
    for level, (request_id, codes) in enumerate(streams.items()):
        np.testing.assert_array_equal(heard(chunks, request_id), expected(codes, level))
    assert max(decoder.batches) == 2


def test_a_listener_that_reads_nothing_is_at_most_a_block_ahead_of_its_credit() -> None:
    stage, _ = make_stage(credit_s=1.0)  # 8 samples: a block
    stage.add("a", Level(0), batch=False)
    codes = frames(14)
    stage.receive([codes_chunk("a", 0, codes, True)])
    chunks = run(stage)
    before = sum(len(c.payload.samples) for c in chunks if isinstance(c.payload, Pcm))
    assert before <= 8 + BLOCK * SAMPLES_PER_FRAME
    stage.credit("a", 100)
    np.testing.assert_array_equal(heard(chunks + run(stage), "a"), expected(codes, 0))


@pytest.mark.parametrize(
    ("inputs", "error"), [(None, InvalidRequest), (Level(HIDDEN_FAULT), RequestFailed)]
)
def test_a_request_that_cannot_be_prepared_leaves_its_slot_free(
    inputs: Level | None, error: type[Exception]
) -> None:
    stage, _ = make_stage(slots=1)
    for _ in range(2):
        with pytest.raises(error):
            stage.add("a", inputs, batch=False)
    stage.add("b", Level(5), batch=False)
    codes = frames(3)
    stage.receive([codes_chunk("b", 0, codes, True)])
    np.testing.assert_array_equal(heard(run(stage), "b"), expected(codes, 5))


def test_context_frames_are_refused() -> None:
    stage, _ = make_stage()
    stage.add("a", Level(0), batch=False)
    stage.receive([codes_chunk("a", 0, frames(6), True, context_frames=1)])
    ((_, error),) = stage.step().failures
    assert "at most 0 context frames, got 1" in str(error)


def load(checkpoint: Path, device: torch.device) -> BlockSums:
    return BlockSums()


def test_a_window_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cantata.stages.codec.stage.resolve", lambda factory: load)
    deployment = CodecDeployment.model_validate({"window": {"chunk_frames": 25}})
    spec = StageSpec("codec", StageKind.CODEC, "here:load")
    with pytest.raises(ConfigError, match="'codec': its decoder has blocks of its own"):
        build_stage(spec, tmp_path, deployment)
