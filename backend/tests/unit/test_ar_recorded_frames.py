"""The completion of frames, recorded: on a CPU a replay calls the talker."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from cantata.contract.model.embedding_source import TalkerPrompt
from cantata.contract.model.talker import FrameDraws, Talker
from cantata.stages.ar import recorded_frames
from cantata.stages.ar.request_state import Layout, LevelSampling, RequestStates, ResolvedSampling
from cantata.stages.ar.talker_step import TalkerStep
from cantata.stages.common import graphs
from cantata.stages.common.graphs import ShapeGraphs

HIDDEN, CODEBOOKS, CODES, SLOTS, POSITIONS = 6, 3, 12, 5, 24
GREEDY = LevelSampling(temperature=0.0)
DRAWN = LevelSampling(temperature=1.0, top_k=8, top_p=0.9)
USUAL = ResolvedSampling(0, GREEDY, GREEDY, GREEDY, repetition_penalty=(1.0, 1.0))


class DrawingTalker(Talker):
    """Every code depends on the hidden state and on the code before it."""

    num_codebooks = CODEBOOKS
    end_code = None
    min_rows = 1

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self._heads = torch.randn(CODEBOOKS, HIDDEN, CODES, generator=generator)
        self._after = torch.randn(CODES, CODES, generator=generator)
        self.sampled_hidden = torch.empty(0)
        self.completed: list[int] = []
        """Rows of each call of `complete_frames`."""
        self.replayed: list[tuple[int, bool, bool]] = []
        """Rows of each call of `make_frames`, whether sampled, whether penalized."""

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        return frames[:, :1].float().expand(-1, HIDDEN)

    def complete_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        self.completed.append(len(hidden))
        return self._frames(hidden, code0, draws)

    def _frames(self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws) -> torch.Tensor:
        codes = [code0]
        for book in range(1, CODEBOOKS):
            # Sums in one order for any number of rows.
            scores = (hidden[:, :, None] * self._heads[book]).sum(1) + self._after[codes[-1]]
            codes.append(draws.choose(scores, book))
        return torch.stack(codes, dim=1)


class RecordableTalker(DrawingTalker):
    """The same, to be recorded; it may refuse."""

    recordable = True
    penalizes_residual = True

    def __init__(self, refuses: bool = False) -> None:
        super().__init__()
        self._refuses = refuses

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        if self._refuses:
            raise RuntimeError("cannot be captured")
        self.replayed.append((len(hidden), draws.is_sampled, draws.repetition is not None))
        return self._frames(hidden, code0, draws)


def make_step(talker: DrawingTalker, slots: int = SLOTS) -> TalkerStep:
    layout = Layout(CODEBOOKS, torch.int64, num_draws=CODEBOOKS)
    states = RequestStates(slots, POSITIONS, layout, HIDDEN, torch.float32, torch.device("cpu"))
    step = TalkerStep(talker, states)  # type: ignore[arg-type]
    prompt = TalkerPrompt(torch.zeros(1, HIDDEN), 1, max_frames=20)
    drawn = replace(USUAL, residual=DRAWN)
    for index in range(slots):
        sampling = (USUAL, drawn, replace(drawn, repetition_penalty=(1.0, 3.0)))[index % 3]
        states.add(f"r{index}", prompt, replace(sampling, seed=index))
    return step


def speak(step: TalkerStep, talker: DrawingTalker, seed: int, slots: int = SLOTS) -> torch.Tensor:
    """Requests take part in random steps, in any order; returns all frames, [S, P, Q]."""
    rng = np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(18):
        names = [f"r{index}" for index in rng.permutation(slots)[: rng.integers(1, slots + 1)]]
        held = [step.states.get_slot(name) for name in names]
        first = step.states.num_frames[held]
        step.schedule(held, first, np.ones(len(held), np.int64))
        talker.sampled_hidden = torch.randn(len(held), HIDDEN, generator=generator)
        step.sample(torch.randn(len(held), CODES, generator=generator))
    return step.states.frames[:-1].clone()


@pytest.mark.parametrize("seed", range(6))
def test_frames_are_the_same_from_recorded_completion(seed: int) -> None:
    plain, talker = DrawingTalker(), RecordableTalker()
    step = make_step(talker)
    step.record()
    recorded = len(talker.replayed)
    expected = speak(make_step(plain), plain, seed)
    assert torch.equal(speak(step, talker, seed), expected)
    assert not talker.completed
    steps = talker.replayed[recorded:]
    assert len(steps) == len(plain.completed) == 18
    assert {1 << (count - 1).bit_length() for count in plain.completed} == {n for n, *_ in steps}
    assert expected.unique().numel() > CODES // 2  # type: ignore[no-untyped-call]


def test_all_kinds_of_steps_are_recorded_for_all_slots() -> None:
    talker = RecordableTalker()
    make_step(talker).record()
    assert sorted(talker.replayed) == [
        (rows, drawn, penalized)
        for rows in (1, 2, 4, 8)
        for drawn in (False, True)
        for penalized in (False, True)
    ]


def test_a_penalty_that_no_request_has_is_not_recorded() -> None:
    talker, plain = RecordableTalker(), DrawingTalker()
    talker.penalizes_residual = False
    step = make_step(talker)
    step.record()
    assert {penalized for _, _, penalized in talker.replayed} == {False}
    # Whoever has one after all is served without a graph.
    assert torch.equal(speak(step, talker, 0), speak(make_step(plain), plain, 0))
    assert talker.completed


def test_the_graphs_of_all_kinds_share_their_scratch_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool, given = (0, 7), list[object]()

    class Watched(ShapeGraphs):
        def __init__(self, function: Any, device: torch.device, pool: Any = None) -> None:
            given.append(pool)
            super().__init__(function, device, pool)

    monkeypatch.setattr(recorded_frames, "make_pool", lambda device: pool)
    monkeypatch.setattr(graphs, "ShapeGraphs", Watched)
    make_step(RecordableTalker()).record()
    assert given == [pool] * 4


def test_recording_leaves_no_trace_in_the_requests() -> None:
    talker = RecordableTalker()
    step = make_step(talker)
    kept = ("frames", "uniforms", "temperature", "rows", "num_frames", "repetition_penalty")
    before = [torch.as_tensor(getattr(step.states, name)).clone() for name in kept]
    step.record()
    for name, value in zip(kept, before, strict=True):
        assert torch.equal(torch.as_tensor(getattr(step.states, name)), value)


def test_a_talker_that_cannot_be_captured_completes_its_own_frames(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plain, talker = DrawingTalker(), RecordableTalker(refuses=True)
    step = make_step(talker)
    with caplog.at_level(logging.WARNING):
        step.record()
    assert len(caplog.records) == 1
    assert "the completion of frames: no CUDA graph of 1 rows" in caplog.text
    assert torch.equal(speak(step, talker, 0), speak(make_step(plain), plain, 0))
    assert talker.completed == plain.completed


def test_a_talker_that_does_not_offer_it_is_not_recorded() -> None:
    plain = DrawingTalker()
    step = make_step(plain)
    step.record()
    speak(step, plain, 0)
    assert len(plain.completed) == 18
