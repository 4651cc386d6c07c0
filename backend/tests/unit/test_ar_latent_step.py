"""What a talker of latents gets beside its noise, and whether its last frame is spoken; driven
without vLLM."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cantata.contract.data.chunks import Rows
from cantata.contract.model.embedding_source import TalkerPrompt
from cantata.contract.model.talker import FrameDraws, Talker
from cantata.stages.ar.chunking import Chunking
from cantata.stages.ar.frames import NewFrame, StopReason
from cantata.stages.ar.request_state import LevelSampling, RequestStates, ResolvedSampling
from cantata.stages.ar.talker_step import TalkerStep, get_layout

HIDDEN, LATENT, SLOTS = 4, 2, 2
FIRST = LevelSampling(temperature=0.0)
GREEDY = ResolvedSampling(0, FIRST, FIRST, FIRST, repetition_penalty=(1.0, 1.0))
CONTEXT = torch.tensor([[7.0, 7.5], [8.0, 8.5]])


class CountingTalker(Talker):
    """A frame is the one before plus the request's own number."""

    num_codebooks = 1
    end_code = 1
    min_rows = 3
    latent_size = LATENT
    noise_size = 1
    num_frame_options = 1
    usual_steps = (4,)
    speaks_end = True
    sampled_hidden = torch.zeros(3, HIDDEN)
    talker_step: TalkerStep

    def __init__(self) -> None:
        self.draws: list[FrameDraws] = []

    def draw_noise(self, seed: int, num_frames: int) -> torch.Tensor:
        return torch.zeros(num_frames, self.noise_size)

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        return frames.repeat(1, HIDDEN // LATENT)

    def complete_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        self.draws.append(draws)
        assert draws.previous is not None
        assert draws.options is not None
        return draws.previous + draws.options


@pytest.fixture
def talker() -> CountingTalker:
    talker = CountingTalker()
    layout = get_layout(talker)
    states = RequestStates(SLOTS, 16, layout, HIDDEN, torch.float32, torch.device("cpu"))
    talker.talker_step = TalkerStep(talker, states)  # type: ignore[arg-type]
    return talker


def prompt(number: float, context: torch.Tensor | None = None, *, steps: int = 4) -> TalkerPrompt:
    return TalkerPrompt(
        torch.zeros(3, HIDDEN),
        3,
        max_frames=8,
        context=context,
        frame_options=(number,),
        frame_steps=steps,
    )


def frames(talker: CountingTalker, names: str, first: int, count: int) -> np.ndarray:
    """[R, E]: the new frames of requests that compute `count` positions from `first` on."""
    step = talker.talker_step
    slots = [step.states.get_slot(name) for name in names]
    step.schedule(slots, np.full(len(names), first), np.full(len(names), count))
    return step.sample(torch.tensor([[1.0, 0.0]] * len(names)))[1].numpy()


def test_the_frame_before_is_the_context_s_last_then_its_own(talker: CountingTalker) -> None:
    states = talker.talker_step.states
    states.add("a", prompt(0.25, CONTEXT), GREEDY)
    states.add("b", prompt(1.0, steps=9), GREEDY)
    np.testing.assert_array_equal(frames(talker, "ab", 0, 3), [[8.25, 8.75], [1, 1]])
    np.testing.assert_array_equal(frames(talker, "ba", 3, 1), [[2, 2], [8.5, 9]])
    options = talker.draws[-1].options
    assert options is not None
    np.testing.assert_array_equal(options, [[1], [0.25], [0]])
    assert talker.draws[-1].steps == (9, 4, 0)


def test_a_frame_without_steps_is_refused(talker: CountingTalker) -> None:
    states = talker.talker_step.states
    with pytest.raises(ValueError, match="a frame of 0 steps; there must be at least 1"):
        states.add("a", prompt(1.0, steps=0), GREEDY)
    states.free("a")
    assert states.num_free == SLOTS


def test_a_recomputed_frame_has_the_same_frame_before(talker: CountingTalker) -> None:
    talker.talker_step.states.add("a", prompt(1.0, CONTEXT), GREEDY)
    frames(talker, "a", 0, 3)
    made = frames(talker, "a", 3, 1)
    frames(talker, "a", 0, 2)  # after preemption, in parts
    np.testing.assert_array_equal(frames(talker, "a", 2, 1), CONTEXT[-1:] + 1)
    np.testing.assert_array_equal(frames(talker, "a", 3, 1), made)
    np.testing.assert_array_equal(frames(talker, "a", 4, 1), made + 1)


def test_a_slot_forgets_the_context_of_its_last_request(talker: CountingTalker) -> None:
    states = talker.talker_step.states
    states.add("a", prompt(1.0, CONTEXT), GREEDY)
    slot = states.get_slot("a")
    states.free("a")
    states.add("b", prompt(0.0), GREEDY)
    assert states.get_slot("b") == slot
    np.testing.assert_array_equal(frames(talker, "b", 0, 3), [[0, 0]])


@pytest.mark.parametrize("speaks_end", [True, False])
def test_the_end_s_frame_is_spoken_if_the_talker_says_so(
    talker: CountingTalker, speaks_end: bool
) -> None:
    talker.speaks_end = speaks_end
    chunking = Chunking(talker, exports_rows=False)  # type: ignore[arg-type]
    last = NewFrame("a", np.ones((1, LATENT), np.float32), StopReason.END_CODE)
    chunk = chunking.frame(chunking.begin(prompt(1.0)), last)
    assert chunk.final
    assert isinstance(chunk.payload, Rows)
    assert chunk.payload.values.tolist() == ([[1, 1]] if speaks_end else [])
