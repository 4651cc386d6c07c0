"""Requests' states and one step's tensor code, driven without vLLM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch

from cantata.contract.model.embedding_source import TalkerPrompt
from cantata.contract.model.talker import SAFE_MIN_ROWS, FrameDraws, SamplerInputs, Talker
from cantata.stages.ar.request_state import (
    Layout,
    LevelSampling,
    RequestStates,
    ResolvedSampling,
)
from cantata.stages.ar.sampling import draw_counter_uniforms
from cantata.stages.ar.talker_step import TalkerStep, get_layout, pad_rows
from pretended_device import device, in_copied_process, pretended

HIDDEN, CODEBOOKS, CODES = 4, 2, 10
FIRST = LevelSampling(temperature=0.0)
GREEDY = ResolvedSampling(0, FIRST, FIRST, FIRST, repetition_penalty=(1.0, 1.0))


class AddingTalker(Talker):
    """Embeds a frame as its code 0 everywhere; the rest of a frame is code 0 plus one."""

    num_codebooks = CODEBOOKS
    end_code = CODES - 1
    min_rows = SAFE_MIN_ROWS
    sampled_hidden = torch.zeros(SAFE_MIN_ROWS, HIDDEN)

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        return frames[:, :1].float().expand(-1, HIDDEN)

    def complete_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        return torch.stack([code0, code0 + 1], dim=1)


@pytest.fixture
def states() -> RequestStates:
    layout = Layout(CODEBOOKS, torch.int64, num_draws=CODEBOOKS + 1)
    return RequestStates(3, 16, layout, HIDDEN, torch.float32, torch.device("cpu"))


@pytest.fixture
def step(states: RequestStates) -> TalkerStep:
    return TalkerStep(cast(Any, AddingTalker()), states)


def prompt(rows: int = 3, prompt_len: int = 2, **options: Any) -> TalkerPrompt:
    values = 100.0 * torch.arange(1, rows + 1)[:, None].expand(-1, HIDDEN)
    return TalkerPrompt(values, prompt_len, **({"max_frames": 8} | options))


def schedule(step: TalkerStep, requests: Mapping[str, tuple[int, int]]) -> None:
    """Request id -> (first position, number of positions)."""
    slots = [step.states.get_slot(request_id) for request_id in requests]
    first, count = np.array(list(requests.values())).T
    step.schedule(slots, first, count)


def scores(*codes: int) -> torch.Tensor:
    """[R, V] logits whose largest is that code."""
    return torch.nn.functional.one_hot(torch.tensor(codes), CODES).float()


def test_slots_are_taken_and_given_back(states: RequestStates) -> None:
    for name in "abc":
        states.add(name, prompt(), GREEDY)
    assert (len(states), states.num_free) == (3, 0)
    assert sorted(states.get_slot(name) for name in "abc") == [0, 1, 2]
    states.free("b")
    states.free("b")
    states.free("unknown")
    assert (len(states), states.num_free) == (2, 1)
    assert "b" not in states
    assert states.slot_or_scratch("b") == states.scratch_slot == 3


def test_a_slot_forgets_its_last_request(states: RequestStates, step: TalkerStep) -> None:
    states.add("a", prompt(rows=6), GREEDY)
    schedule(step, {"a": (0, 2)})
    step.sample(scores(4))
    slot = states.get_slot("a")
    assert states.num_frames[slot] == 1
    states.free("a")
    states.add("b", prompt(rows=2), GREEDY)
    assert states.get_slot("b") == slot
    assert states.num_frames[slot] == 0
    schedule(step, {"b": (0, 5)})
    assert step.input_rows()[:, 0].tolist()[:2] == [100.0, 200.0]


def test_rows_of_prompt_track_and_feedback(states: RequestStates, step: TalkerStep) -> None:
    states.add("a", prompt(rows=3, prompt_len=2), GREEDY)
    schedule(step, {"a": (0, 2)})
    assert step.input_rows()[:, 0].tolist() == [100.0, 200.0]
    assert step.sample(scores(4))[1].tolist() == [[4, 5]]
    schedule(step, {"a": (2, 1)})
    assert step.input_rows()[:, 0].tolist() == [304.0]
    step.sample(scores(7))
    # The rows have ended: the last one is repeated.
    schedule(step, {"a": (3, 1)})
    assert step.input_rows()[:, 0].tolist() == [307.0]


def test_requests_keep_to_their_own_rows(states: RequestStates, step: TalkerStep) -> None:
    states.add("a", prompt(), GREEDY)
    states.add("b", prompt(prompt_len=1), GREEDY)
    schedule(step, {"b": (0, 1)})
    step.sample(scores(6))
    schedule(step, {"a": (0, 2), "b": (1, 1)})
    assert step.input_rows()[:, 0].tolist() == [100.0, 200.0, 206.0]


def test_only_who_asks_gets_probabilities_by_the_talker_s_own_scores(
    states: RequestStates, step: TalkerStep
) -> None:
    warm = LevelSampling(temperature=0.5)
    asks = replace(GREEDY, code_0=warm, repetition_penalty=(2.0, 1.0), logprobs=True)
    asks = replace(asks, top_logprobs=2)
    states.add("a", prompt(), GREEDY)
    states.add("b", prompt(), asks)
    states.add("c", prompt(rows=5, prompt_len=5), asks)
    for first in range(2):
        begin = (0, 2) if first == 0 else (2, 1)
        schedule(step, {"a": begin, "b": begin, "c": (first, 1)})
        given = torch.linspace(-2, 2, 3 * CODES).reshape(3, CODES).flip(1) ** 3
        tokens, _ = step.sample(given.clone())
        [(slot, scored)] = step.take_logprobs().items()
        assert slot == states.get_slot("b"), "the others do not ask, or are inside their prompt"
        likely = given[1].log_softmax(0)
        assert scored.chosen == pytest.approx(float(likely[tokens[1]]))
        assert [code for code, _ in scored.top] == likely.topk(2).indices.tolist()
        assert [one for _, one in scored.top] == pytest.approx(likely.topk(2).values.tolist())
    assert step.take_logprobs() == {}


def test_a_chunk_inside_the_prompt_makes_no_frame(states: RequestStates, step: TalkerStep) -> None:
    states.add("a", prompt(rows=5, prompt_len=5), GREEDY)
    schedule(step, {"a": (0, 3)})
    step.sample(scores(8))
    assert states.num_frames[states.get_slot("a")] == 0
    schedule(step, {"a": (3, 2)})
    step.sample(scores(1))
    schedule(step, {"a": (5, 1)})
    assert step.input_rows()[:, 0].tolist() == [501.0]


def test_recompute_replays_the_history(states: RequestStates, step: TalkerStep) -> None:
    states.add("a", prompt(), GREEDY)
    for position, code in ((0, 3), (2, 4), (3, 5)):
        schedule(step, {"a": (position, 2 if position == 0 else 1)})
        step.sample(scores(code))
    # Preempted: everything again, in two parts. The first draws anew for an old frame.
    schedule(step, {"a": (0, 3)})
    assert step.input_rows()[:, 0].tolist() == [100.0, 200.0, 303.0]
    step.sample(scores(0))
    schedule(step, {"a": (3, 2)})
    assert step.input_rows()[:, 0].tolist() == [304.0, 305.0]
    step.sample(scores(6))
    slot = states.get_slot("a")
    assert states.num_frames[slot] == 4
    assert states.frames[slot, :4, 0].tolist() == [3, 4, 5, 6]


def test_min_frames_masks_the_end_code(states: RequestStates, step: TalkerStep) -> None:
    states.add("a", prompt(min_frames=1), GREEDY)
    end_then_two = scores(CODES - 1) + 0.5 * scores(2)
    schedule(step, {"a": (0, 2)})
    assert step.sample(end_then_two)[1][0, 0] == 2
    schedule(step, {"a": (2, 1)})
    assert step.sample(end_then_two)[1][0, 0] == CODES - 1
    assert end_then_two[0, CODES - 1] == 1.0


class PromptedTalker(AddingTalker):
    """Its penalty counts codes 5 and 6 as spoken."""

    prompt_codes = (5, 6)


def test_repetition_penalty_counts_a_prompt_s_codes(states: RequestStates) -> None:
    step = TalkerStep(cast(Any, PromptedTalker()), states)
    states.add("a", prompt(), replace(GREEDY, repetition_penalty=(3.0, 1.0)))
    states.add("b", prompt(), GREEDY)
    favourite = scores(5, 5) + 0.9 * scores(6, 6) + 0.5 * scores(2, 2)
    schedule(step, {"a": (0, 2), "b": (0, 2)})
    assert step.sample(favourite)[0].tolist() == [2, 5]
    schedule(step, {"a": (2, 1), "b": (2, 1)})
    assert step.sample(favourite)[0].tolist() == [5, 5]


class TwiceEndingTalker(AddingTalker):
    """Code 3 ends it too."""

    def complete_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        return torch.where(code0 == 3, self.end_code, code0)[:, None].expand(-1, CODEBOOKS)


def test_a_talker_may_have_several_codes_that_end_it(states: RequestStates) -> None:
    step = TalkerStep(cast(Any, TwiceEndingTalker()), states)
    for name in "abc":
        states.add(name, prompt(), GREEDY)
    schedule(step, dict.fromkeys("abc", (0, 2)))
    assert step.sample(scores(3, 4, CODES - 1))[0].tolist() == [CODES - 1, 4, CODES - 1]


def test_repetition_penalty_sees_only_spoken_codes(states: RequestStates, step: TalkerStep) -> None:
    penalized = replace(GREEDY, repetition_penalty=(3.0, 1.0))
    states.add("a", prompt(), penalized)
    states.add("b", prompt(), GREEDY)
    logits = scores(4, 4) + 0.5 * scores(6, 6)
    schedule(step, {"a": (0, 2), "b": (0, 2)})
    assert step.sample(logits)[1][:, 0].tolist() == [4, 4]
    schedule(step, {"a": (2, 1), "b": (2, 1)})
    assert step.sample(logits)[1][:, 0].tolist() == [6, 4]


def test_use_penalties_count_what_was_drawn_and_not_the_prompt(states: RequestStates) -> None:
    step = TalkerStep(cast(Any, PromptedTalker()), states)
    # 5 is 0.6 ahead: used twice, it has lost 0.8. A prompt's codes are not counted.
    states.add("frequent", prompt(rows=5), replace(GREEDY, use_penalty=(0.0, 0.4)))
    states.add("present", prompt(rows=5), replace(GREEDY, use_penalty=(0.7, 0.0)))
    states.add("free", prompt(rows=5), GREEDY)
    logits = 2.0 * scores(5, 5, 5) + 1.4 * scores(6, 6, 6)
    found = []
    for position, count in ((0, 2), (2, 1), (3, 1), (4, 1)):
        schedule(step, dict.fromkeys(("frequent", "present", "free"), (position, count)))
        found.append(step.sample(logits)[0].tolist())
    frequent, present, free = zip(*found, strict=True)
    assert frequent == (5, 5, 6, 5)
    assert present == (5, 6, 5, 5)
    assert free == (5, 5, 5, 5)


class ChoosingTalker(AddingTalker):
    """Chooses its second code by scores that prefer 5 to 7."""

    def complete_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        liked = (scores(5) + 0.5 * scores(7)).expand(len(code0), -1)
        return torch.stack([code0, draws.choose(liked, 1)], dim=1)


def test_each_codebook_has_a_penalty_by_its_own_history(states: RequestStates) -> None:
    step = TalkerStep(cast(Any, ChoosingTalker()), states)
    states.add("a", prompt(), replace(GREEDY, repetition_penalty=(1.0, 3.0)))
    states.add("b", prompt(), GREEDY)
    found = []
    for position in (0, 2, 3):
        count = 2 if position == 0 else 1
        schedule(step, {"a": (position, count), "b": (position, count)})
        found.append(step.sample(scores(5, 5))[1].tolist())
    # Code 0 stays 5: it has a penalty of its own. Both second codes are used up after two frames.
    assert [a for a, _ in found] == [[5, 5], [5, 7], [5, 5]]
    assert [b for _, b in found] == [[5, 5], [5, 5], [5, 5]]


class StoppingTalker(AddingTalker):
    """Stops with as much chance as `odds` says."""

    end_code = CODES
    decides_stop = True
    odds = 0.5

    def stop_scores(self) -> torch.Tensor:
        goes_on, stops = 1.0 - self.odds, self.odds
        return torch.tensor([[goes_on, stops]]).log().expand(SAFE_MIN_ROWS, -1)


def test_the_decision_to_stop_is_drawn_apart_from_code_0(states: RequestStates) -> None:
    talker: Any = StoppingTalker()
    step = TalkerStep(talker, states)
    assert get_layout(talker).num_draws == CODEBOOKS + 1
    sampled = replace(GREEDY, seed=7, stop=LevelSampling(temperature=1.0))
    states.add("a", prompt(), sampled)
    talker.odds = 0.3
    uniform = float(draw_counter_uniforms(7, 1, CODEBOOKS + 1)[0, -1])
    assert 0.3 < uniform < 0.7
    schedule(step, {"a": (0, 2)})
    assert step.sample(scores(4))[1][0, 0] == 4  # going on is likelier and comes first
    states.free("a")
    states.add("a", prompt(), sampled)
    talker.odds = 0.7
    schedule(step, {"a": (0, 2)})
    assert step.sample(scores(4))[1][0, 0] == talker.end_code


def test_a_stop_waits_for_the_least_frames_and_is_greedy_on_demand(states: RequestStates) -> None:
    talker: Any = StoppingTalker()
    step = TalkerStep(talker, states)
    talker.odds = 0.9
    states.add("a", prompt(min_frames=1), GREEDY)
    states.add("b", prompt(), GREEDY)
    schedule(step, {"a": (0, 2), "b": (0, 2)})
    assert step.sample(scores(4, 4))[1][:, 0].tolist() == [4, talker.end_code]
    schedule(step, {"a": (2, 1)})
    assert step.sample(scores(4))[1][0, 0] == talker.end_code


class LawfulTalker(AddingTalker):
    """Says the code that its uniform number of its own points at, in tenths, and keeps what it saw.
    A request that is not sampled repeats its oldest recent code, or says 2."""

    law_draws, history_frames = 2, 3

    def __init__(self) -> None:
        self.seen: list[SamplerInputs] = []
        self.end_scores: list[float] = []
        """Of the last step's first two requests."""

    def draw_first(self, scores: torch.Tensor, draws: SamplerInputs) -> torch.Tensor:
        self.seen.append(draws)
        self.end_scores = scores[:2, self.end_code].tolist()
        pointed = (draws.uniforms[:, 2] * (CODES - 1)).long()
        oldest = draws.recent[:, 0, 0]
        repeated = torch.where(oldest < 0, 2, oldest)
        return torch.where(draws.sampling.temperature > 0, pointed, repeated)


def test_a_talker_s_own_law_sees_the_last_frames_and_draws_of_its_own() -> None:
    talker: Any = LawfulTalker()
    assert get_layout(talker).num_draws == CODEBOOKS + 2
    states = RequestStates(3, 16, get_layout(talker), HIDDEN, torch.float32, torch.device("cpu"))
    step = TalkerStep(talker, states)
    sampled = LevelSampling(temperature=0.5, top_k=4)
    # The engine's own penalty would forbid what the law says.
    drawn = replace(GREEDY, seed=7, code_0=sampled, repetition_penalty=(9.0, 1.0))
    states.add("other", prompt(), GREEDY)
    states.add("a", prompt(), drawn)
    found = []
    for position, count in ((0, 2), (2, 1), (3, 1), (4, 1)):
        schedule(step, {"a": (position, count)})
        found.append(int(step.sample(scores(1))[0]))
    uniforms = draw_counter_uniforms(7, 4, CODEBOOKS + 2)
    assert found == [int(uniforms[frame, 3] * (CODES - 1)) for frame in range(4)]
    assert len(set(found)) > 1
    seen = talker.seen[-1]
    assert torch.equal(seen.uniforms[0], uniforms[3, [0, 2, 3]])
    assert seen.recent[0].tolist() == [[code, code + 1] for code in found[:3]]
    assert talker.seen[1].recent[0, :, 0].tolist() == [-1, -1, found[0]]
    assert (talker.seen[0].recent[0] == -1).all()
    assert (float(seen.penalty[0]), int(seen.sampling.top_k[0])) == (9.0, 4)
    assert [draws.is_sampled for draws in talker.seen] == [True] * 4


def test_a_law_waits_for_the_least_frames_and_serves_requests_at_different_depths() -> None:
    talker: Any = LawfulTalker()
    states = RequestStates(3, 16, get_layout(talker), HIDDEN, torch.float32, torch.device("cpu"))
    step = TalkerStep(talker, states)
    states.add("a", prompt(min_frames=9), GREEDY)
    states.add("b", prompt(), GREEDY)
    schedule(step, {"a": (0, 2)})
    step.sample(scores(4))
    schedule(step, {"b": (0, 2), "a": (2, 1)})
    step.sample(scores(4, 4))
    seen = talker.seen[-1]
    assert seen.recent[:2, :, 0].tolist() == [[-1, -1, -1], [-1, -1, 2]]
    assert not seen.is_sampled
    assert talker.end_scores == [0.0, -torch.inf]


def test_made_up_requests_touch_nothing(states: RequestStates, step: TalkerStep) -> None:
    states.add("a", prompt(), GREEDY)
    before = states.frames[:3].clone()
    slots = [states.slot_or_scratch(name) for name in ("warm-up 0", "warm-up 1")]
    step.schedule(slots, np.zeros(2, np.int32), np.array([3, 16]))
    assert step.input_rows().shape == (19, HIDDEN)
    step.sample(scores(1, 2))
    assert torch.equal(states.frames[:3], before)
    assert states.num_frames.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("rows", [1, 7, 8, 11])
def test_padding(rows: int) -> None:
    values: Any = torch.ones(rows, 2, dtype=torch.int64)
    padded = pad_rows(values, 8)
    assert padded.shape == (max(rows, 8), 2)
    assert torch.equal(padded[:rows], values)
    assert not padded[rows:].any()


@in_copied_process
@pytest.mark.parametrize("kind", [AddingTalker, StoppingTalker])
@in_copied_process
def test_a_step_copies_its_indices_to_the_device_at_once(kind: type[AddingTalker]) -> None:
    """For positions, rows, fed frames and new ones, rows that leave, and who must not end yet."""
    with pretended() as moves:
        talker: Any = kind()
        talker.rotary_axes = 3
        states = RequestStates(3, 16, get_layout(talker), HIDDEN, torch.float32, device())
        for name in ("sampled_hidden", "exported"):
            setattr(talker, name, torch.zeros(SAFE_MIN_ROWS, HIDDEN).to(device()))
        odds = torch.tensor([[0.5, 0.5]]).log().to(device())
        talker.stop_scores = lambda: odds.expand(SAFE_MIN_ROWS, -1)
        step = TalkerStep(talker, states)
        step.export()
        sampled = replace(FIRST, temperature=0.7)
        how = replace(GREEDY, code_0=sampled, residual=sampled, repetition_penalty=(1.1, 1.1))
        for name in "ab":
            states.add(name, prompt(min_frames=4), how)
        for first, count in ((0, 2), (2, 1)):
            given = scores(3, 4).to(device())
            moves.clear()
            schedule(step, dict.fromkeys("ab", (first, count)))
            step.input_rows()
            step.rotary_positions()
            step.sample(given)
            assert not [move for move in moves if move.waits]
            uploads = [move for move in moves if "upload.py" in move.places[0]]
            assert len(uploads) == 1
            assert {move.places[0].split(":")[0] for move in moves} == {"upload.py", "device.py"}
