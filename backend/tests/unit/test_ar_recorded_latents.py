"""The completion of latents, recorded by number of steps: on a CPU a replay calls the talker."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest
import torch

from cantata.contract.model.embedding_source import TalkerPrompt
from cantata.contract.model.talker import FrameDraws, Talker
from cantata.stages.ar.request_state import LevelSampling, RequestStates, ResolvedSampling
from cantata.stages.ar.talker_step import TalkerStep, get_layout

HIDDEN, LATENT, SLOTS, POSITIONS = 4, 3, 5, 24
USUAL, OTHER = 4, 7
# A temperature for codes means nothing to a talker of latents.
DRAWN = LevelSampling(temperature=1.0)
GREEDY = LevelSampling(temperature=0.0)


class SolvingTalker(Talker):
    """A frame goes from its noise towards the hidden state, and on from the frame before."""

    num_codebooks = 1
    end_code = None
    min_rows = 3
    latent_size = LATENT
    noise_size = LATENT
    num_frame_options = 1

    def __init__(self, usual_steps: tuple[int, ...] = (USUAL,)) -> None:
        self.usual_steps = usual_steps
        self.sampled_hidden = torch.empty(0)
        self.completed: list[tuple[int, ...]] = []
        """Steps of each call of `complete_frames`."""
        self.embedded: list[int] = []
        """Rows of each call of `embed_frames`."""

    def draw_noise(self, seed: int, num_frames: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(num_frames, LATENT, generator=generator)

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        self.embedded.append(len(frames))
        return frames[:, :1].expand(-1, HIDDEN)

    def complete_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        counts = draws.steps or (USUAL,) * len(hidden)
        self.completed.append(counts)
        rows = [self._solved(hidden, draws, steps)[row] for row, steps in enumerate(counts)]
        return torch.stack(rows)

    def _solved(self, hidden: torch.Tensor, draws: FrameDraws, steps: int) -> torch.Tensor:
        assert draws.noise is not None
        assert draws.previous is not None
        assert draws.options is not None
        x = draws.noise
        for step in range(steps):
            x = x + (hidden[:, :LATENT] * draws.options - x + draws.previous / 2) / (step + 2)
        return x


class RecordableSolver(SolvingTalker):
    """The same, to be recorded; it may refuse from a number of rows on."""

    recordable = True

    def __init__(self, usual_steps: tuple[int, ...] = (USUAL,), refuses_from: int = 100) -> None:
        super().__init__(usual_steps)
        self._refuses_from = refuses_from
        self.replayed: list[tuple[int, int]] = []
        """Rows and steps of each call of `make_frames`."""

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        (steps,) = set(draws.steps or (USUAL,))
        if len(hidden) >= self._refuses_from:
            raise RuntimeError("cannot be captured")
        assert not draws.is_sampled
        self.replayed.append((len(hidden), steps))
        return self._solved(hidden, draws, steps)


def make_step(talker: SolvingTalker, steps: Callable[[int], int]) -> TalkerStep:
    layout = get_layout(talker)
    states = RequestStates(SLOTS, POSITIONS, layout, HIDDEN, torch.float32, torch.device("cpu"))
    step = TalkerStep(talker, states)  # type: ignore[arg-type]
    for index in range(SLOTS):
        prompt = TalkerPrompt(
            torch.zeros(1, HIDDEN),
            prompt_len=1,
            max_frames=20,
            context=torch.full((1, LATENT), float(index)),
            frame_options=(1.0 + index,),
            frame_steps=steps(index),
        )
        states.add(f"r{index}", prompt, ResolvedSampling(index, GREEDY, DRAWN, GREEDY, (1.0, 1.0)))
    return step


def speak(step: TalkerStep, talker: SolvingTalker, seed: int) -> torch.Tensor:
    """Requests take part in random steps, in any order; returns what was fed back and all frames,
    [18 * S, D + E]."""
    rng = np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(seed)
    fed = []
    for _ in range(18):
        names = [f"r{index}" for index in rng.permutation(SLOTS)[: rng.integers(1, SLOTS + 1)]]
        held = [step.states.get_slot(name) for name in names]
        step.schedule(held, step.states.num_frames[held], np.ones(len(held), np.int64))
        fed.append(step.input_rows())
        rows = max(len(held), talker.min_rows)
        talker.sampled_hidden = torch.randn(rows, HIDDEN, generator=generator)
        step.sample(torch.zeros(len(held), 2))
    frames = step.states.frames[:-1].flatten(0, 1)
    return torch.cat([torch.cat(fed).flatten(), frames.flatten()])


def test_each_usual_number_of_steps_is_recorded_for_all_slots() -> None:
    talker = RecordableSolver((USUAL, 2))
    make_step(talker, lambda index: USUAL).record()
    assert talker.replayed == [(rows, steps) for steps in (USUAL, 2) for rows in (1, 2, 4, 8)]
    assert talker.embedded == [1, 2, 4, 8]


@pytest.mark.parametrize("seed", range(4))
def test_latents_are_the_same_from_recorded_completion(seed: int) -> None:
    """Noise, the frame before, numbers and the frame that is fed back are each request's own."""
    plain, talker = SolvingTalker(), RecordableSolver()
    step = make_step(talker, lambda index: USUAL)
    step.record()
    talker.embedded.clear()
    expected = speak(make_step(plain, lambda index: USUAL), plain, seed)
    assert torch.equal(speak(step, talker, seed), expected)
    assert not talker.completed
    assert set(talker.embedded) <= {4, 8}
    assert max(plain.embedded) == SLOTS
    assert expected.unique().numel() > 3 * SLOTS  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("seed", range(4))
def test_requests_of_other_steps_are_completed_together_beside_the_recorded(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    def mixed(index: int) -> int:
        return (USUAL, OTHER, 2)[index % 3]

    plain, talker = SolvingTalker(), RecordableSolver()
    step = make_step(talker, mixed)
    step.record()
    recorded = len(talker.replayed)
    with caplog.at_level(logging.INFO):
        made = speak(step, talker, seed)
    assert torch.equal(made, speak(make_step(plain, mixed), plain, seed))
    assert {steps for _, steps in talker.replayed[recorded:]} == {USUAL}
    assert {count for steps in talker.completed for count in steps} - {0} == {OTHER, 2}
    assert any({OTHER, 2} <= set(steps) for steps in talker.completed)
    assert sorted(record.getMessage() for record in caplog.records) == [
        f"the completion of frames: no CUDA graph of {steps} steps, so it runs without; recorded "
        f"are those of {USUAL}"
        for steps in (2, OTHER)
    ]


def test_what_cannot_be_captured_is_completed_plainly_with_a_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plain, talker = SolvingTalker(), RecordableSolver(refuses_from=4)
    step = make_step(talker, lambda index: USUAL)
    with caplog.at_level(logging.INFO):
        step.record()
        made = speak(step, talker, 0)
    assert torch.equal(made, speak(make_step(plain, lambda index: USUAL), plain, 0))
    assert {len(steps) for steps in talker.completed} == {3, 4, 5}
    assert [record.getMessage() for record in caplog.records] == [
        "the completion of frames: no CUDA graph of 4 rows or more, so it runs without: "
        "cannot be captured"
    ]


def test_a_talker_whose_frames_take_no_steps_is_recorded_once() -> None:
    plain, talker = SolvingTalker(()), RecordableSolver(())
    step = make_step(talker, lambda index: 0)
    step.record()
    assert talker.replayed == [(rows, USUAL) for rows in (1, 2, 4, 8)]
    made = speak(step, talker, 0)
    assert torch.equal(made, speak(make_step(plain, lambda index: 0), plain, 0))
    assert not talker.completed
