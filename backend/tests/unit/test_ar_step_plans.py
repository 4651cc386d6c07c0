"""Which positions a step computes, padded to which shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from cantata.contract.model.embedding_source import TalkerPrompt
from cantata.stages.ar.lanes import LaneRequest, Lanes
from cantata.stages.ar.request_state import Layout, LevelSampling, RequestStates, ResolvedSampling
from cantata.stages.ar.slot_steps import EVERY_KIND, DecodeIndex, PromptIndex, StepKind
from cantata.stages.ar.step_graphs import StepShapes, pad_to
from cantata.stages.ar.step_plans import StepPlanner

SLOTS, POSITIONS = 10, 1000
GREEDY = LevelSampling(temperature=0.0)
DRAWN = LevelSampling(temperature=1.0)
PLAIN = StepKind(False, False, False, False)


class Requests:
    """Slots and lanes of the same requests."""

    def __init__(self) -> None:
        layout = Layout(3, torch.int64, num_draws=3)
        self.states = RequestStates(SLOTS, POSITIONS, layout, 4, torch.float32, torch.device("cpu"))
        self.lanes = Lanes(lambda *moved: None)

    def add(self, prompt_len: int, min_frames: int = 0, **sampling: Any) -> LaneRequest:
        name = str(len(self.lanes))
        prompt = TalkerPrompt(torch.zeros(prompt_len, 4), prompt_len, 50, min_frames)
        usual: dict[str, Any] = {"code_0": GREEDY, "residual": GREEDY}
        usual["repetition_penalty"] = (1.0, 1.0)
        how = ResolvedSampling(0, stop=GREEDY, **{**usual, **sampling})
        self.states.add(name, prompt, how)
        slot = self.states.get_slot(name)
        run = LaneRequest(name, slot, prompt_len, 50, resumable=False, priority=0)
        self.lanes.add(run)
        return run


def test_shapes_grow_to_all_slots_and_positions() -> None:
    shapes = StepShapes(slots=20, positions=700)
    assert shapes.list_batches() == [1, 2, 4, 8, 12, 16, 20]
    assert shapes.list_lengths() == [256, 512, 700]
    assert shapes.list_prompts() == [16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 700]
    assert shapes.list_prompt_batches(128) == [1, 2, 4]
    assert shapes.list_prompt_batches(512) == shapes.list_prompt_batches(700) == [1]
    assert StepShapes(slots=2, positions=40).list_prompt_batches(16) == [1, 2]
    assert StepShapes(slots=1, positions=200).list_lengths() == [200]
    assert [pad_to(count, [1, 2, 4]) for count in (1, 2, 3, 4)] == [1, 2, 4, 4]


def test_prompts_of_one_length_are_computed_together() -> None:
    requests = Requests()
    lengths = [20, 60, 25, 30, 17, 31, 5]
    runs = [requests.add(length) for length in lengths]
    planner = StepPlanner(requests.states, StepShapes(SLOTS, POSITIONS))
    grouped = list(planner.group_prompts(runs, most=10_000))
    assert [[run.prompt_len for run in group] for group in grouped] == [
        [20, 25, 30, 17],
        [60, 31, 5],
    ]
    (first,) = planner.group_prompts(runs, most=130)
    assert first == grouped[0], "the second group would make it 160 positions"
    (alone,) = planner.group_prompts(runs[1:2], most=3)
    assert alone == [runs[1]], "a prompt longer than a step's positions is computed alone"
    for run in grouped[1]:
        requests.lanes.begin(run)
    plan = planner.plan_prompts(grouped[1])
    assert (plan.is_prompt, plan.size, list(plan.columns)) == (True, 64, [0, 1, 2])
    assert plan.indices.shape == (len(PromptIndex), 4)
    assert plan.indices[PromptIndex.LAST].tolist() == [59, 30, 4, 0]
    assert plan.indices[PromptIndex.LANE].tolist() == [0, 1, 2, SLOTS]
    assert plan.indices[PromptIndex.SLOT, 3] == requests.states.scratch_slot


def test_without_shapes_prompts_are_computed_one_by_one_as_they_are() -> None:
    requests = Requests()
    runs = [requests.add(length) for length in (20, 7)]
    planner = StepPlanner(requests.states, None)
    assert list(planner.group_prompts(runs, most=100)) == [[runs[0]], [runs[1]]]
    requests.lanes.begin(runs[1])
    plan = planner.plan_prompts(runs[1:])
    assert (plan.size, plan.indices.shape) == (7, (len(PromptIndex), 1))


def test_a_batch_is_the_lanes_up_to_the_last_that_steps() -> None:
    requests = Requests()
    planner = StepPlanner(requests.states, StepShapes(SLOTS, POSITIONS))
    assert planner.plan_decode(requests.lanes.used) is None
    runs = [requests.add(1, min_frames=2) for _ in range(6)]
    for run, position in zip(runs, (0, 3, 256, 40, 999, 1000), strict=True):
        run.position = position
    for waits in (runs[1], runs[4], runs[5]):
        waits.frames_left = 0
    plan = planner.plan_decode(requests.lanes.used)
    assert plan is not None
    assert (plan.is_prompt, plan.size) == (False, 512)
    assert (plan.runs, list(plan.columns)) == ([runs[0], runs[2], runs[3]], [0, 2, 3])
    assert plan.indices.shape == (len(DecodeIndex), 4)
    scratch = requests.states.scratch_slot
    assert plan.indices[DecodeIndex.SLOT].tolist() == [
        runs[0].slot,
        scratch,
        *(r.slot for r in runs[2:4]),
    ]
    assert plan.indices[DecodeIndex.POSITION].tolist() == [0, 3, 256, 40]
    assert plan.indices[DecodeIndex.FED_BACK].tolist() == [-1, 0, 255, 39]
    assert plan.indices[DecodeIndex.FRAME].tolist() == [0, 0, 256, 40]
    assert plan.indices[DecodeIndex.ROW].tolist() == [0, 0, 0, 0]
    assert plan.indices[DecodeIndex.MAY_END].tolist() == [0, 0, 1, 1]
    runs[4].frames_left = 1
    plan = planner.plan_decode(requests.lanes.used)
    assert plan is not None
    assert plan.size == POSITIONS
    others = plan.indices[DecodeIndex.POSITION, 5:]
    assert others.tolist() == [POSITIONS - 1] * 3, "a full lane, and lanes that are nobody's"


def test_without_shapes_a_batch_is_as_long_as_it_is() -> None:
    requests = Requests()
    run = requests.add(1)
    run.position = 40
    plan = StepPlanner(requests.states, None).plan_decode(requests.lanes.used)
    assert plan is not None
    assert (plan.size, plan.indices.shape) == (64, (len(DecodeIndex), 1))


@pytest.mark.parametrize(
    ("sampling", "kind"),
    [
        ({}, PLAIN),
        ({"code_0": DRAWN}, StepKind(True, False, False, False)),
        ({"residual": DRAWN}, StepKind(False, True, False, False)),
        ({"repetition_penalty": (1.1, 1.0)}, StepKind(False, False, True, False)),
        ({"repetition_penalty": (1.0, 1.1)}, StepKind(False, False, False, True)),
        ({"use_penalty": (0.1, 0.0)}, StepKind(False, False, True, False)),
    ],
)
def test_one_request_decides_what_a_batch_needs(sampling: dict[str, Any], kind: StepKind) -> None:
    requests = Requests()
    requests.add(1)
    requests.add(1, **sampling)
    plan = StepPlanner(requests.states, None).plan_decode(requests.lanes.used)
    assert plan is not None
    assert plan.kind == kind
    assert EVERY_KIND.covers(kind)
    assert kind.covers(PLAIN)
    assert PLAIN.covers(kind) == (kind == PLAIN)


def test_indices_are_those_that_torch_takes() -> None:
    requests = Requests()
    requests.add(1)
    plan = StepPlanner(requests.states, None).plan_decode(requests.lanes.used)
    assert plan is not None
    assert plan.indices.dtype == np.int64
    assert plan.indices.flags.c_contiguous
