"""A request's numbers: drawn in portions, the same as all at once; on a device by one upload."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cantata.contract.model.embedding_source import TalkerPrompt
from cantata.stages.ar.request_state import (
    DRAWN_AT_ONCE,
    Layout,
    LevelSampling,
    RequestStates,
    ResolvedSampling,
)
from cantata.stages.ar.sampling import draw_counter_uniforms
from pretended_device import device, in_own_process, pretended

CPU = torch.device("cpu")
DRAWS, POSITIONS = 3, 4 * DRAWN_AT_ONCE
SAMPLING = ResolvedSampling(
    seed=5,
    code_0=LevelSampling(0.25, 50, 0.75),
    residual=LevelSampling(0.5, 2**20 + 1, 0.5),
    stop=LevelSampling(0.0),
    repetition_penalty=(1.125, 1.25),
    use_penalty=(0.375, -0.5),
)


def make_states(on: torch.device = CPU) -> RequestStates:
    layout = Layout(4, torch.int64, num_draws=DRAWS, num_options=2)
    return RequestStates(2, POSITIONS, layout, 8, torch.float32, on)


def make_prompt(max_frames: int, options: tuple[float, ...] = (1.5, 2.5)) -> TalkerPrompt:
    context = torch.arange(8).view(2, 4)
    rows = torch.arange(24.0).view(3, 8)
    return TalkerPrompt(rows, 3, max_frames, context=context, frame_options=options)


@pytest.mark.parametrize("max_frames", [1, DRAWN_AT_ONCE, DRAWN_AT_ONCE + 1, 3 * DRAWN_AT_ONCE - 5])
def test_every_frame_has_its_numbers_when_it_is_made(max_frames: int) -> None:
    states = make_states()
    expected = draw_counter_uniforms(SAMPLING.seed, max_frames, DRAWS)
    for name in ("first", "again"):
        states.add(name, make_prompt(max_frames), SAMPLING)
        slot = states.get_slot(name)
        for frame in range(max_frames):
            states.draw_ahead(np.array([states.scratch_slot, slot]), np.array([0, frame]))
            assert torch.equal(states.uniforms[slot, frame], expected[frame])
        assert not states.uniforms[slot, max_frames:].any()
        states.free(name)
        states.uniforms.zero_()
        states.draw_ahead(np.array([slot]), np.array([max_frames]))
        assert not states.uniforms.any(), "a slot without a request needs none"


def test_no_more_are_drawn_than_soon_needed() -> None:
    states = make_states()
    states.add("a", make_prompt(POSITIONS), SAMPLING)
    drawn = states.uniforms[states.get_slot("a")].any(dim=1)
    assert drawn[:DRAWN_AT_ONCE].all()
    assert not drawn[DRAWN_AT_ONCE:].any()


@pytest.mark.thorough
@in_own_process
def test_a_request_waits_for_no_copy_and_its_numbers_arrive() -> None:
    here = make_states()
    with pretended() as moves:
        states = make_states(device())
        moves.clear()
        for each in (here, states):
            each.add("a", make_prompt(POSITIONS), SAMPLING)
        # The rows, the last frame of the context, and all numbers.
        assert [move.what for move in moves] == ["queued"] * 3
        moves.clear()
        for each in (here, states):
            each.draw_ahead(np.array([each.get_slot("a")]), np.array([DRAWN_AT_ONCE]))
        assert [move.what for move in moves] == ["queued"]
        for name, kept in vars(here).items():
            if isinstance(kept, torch.Tensor):
                assert torch.equal(kept, getattr(states, name).cpu()), name


def test_a_prompt_with_too_few_options_is_refused() -> None:
    states = make_states()
    with pytest.raises(RuntimeError):
        states.add("a", make_prompt(5, options=(1.5,)), SAMPLING)
    states.free("a")
    assert states.num_free == 2
