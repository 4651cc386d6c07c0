"""The batches of an engine step: whose positions, and the indices that tell the device.

Letters: B requests of a batch, T positions of a prompt, L positions that attention reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata.stages.ar.lanes import LaneRequest
from cantata.stages.ar.request_state import CODE_0, RESIDUAL, RequestStates
from cantata.stages.ar.slot_steps import DecodeIndex, PromptIndex, StepKind
from cantata.stages.ar.step_graphs import StepShapes, pad_to

_READ_AT_ONCE = 32
"""Where nothing is padded, L is still a multiple of this."""


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One batch."""

    is_prompt: bool
    """`SlotSteps.prefill` makes its frames; else `SlotSteps.decode`."""
    runs: Sequence[LaneRequest]
    columns: Sequence[int]
    """Of the runs, in `indices`."""
    kind: StepKind
    size: int
    """T or L."""
    indices: NDArray[np.int64]
    """[4 or 6, B]"""


class StepPlanner:
    """Makes the plans.

    Args:
        states: of the requests.
        shapes: what B, T and L are padded to. None: prompts are computed one by one, and nothing is
            padded.
    """

    def __init__(self, states: RequestStates, shapes: StepShapes | None) -> None:
        self._states, self._shapes = states, shapes
        self._positions = states.frames.shape[1]
        self._batches = [] if shapes is None else shapes.list_batches()
        self._lengths = [] if shapes is None else shapes.list_lengths()
        self._prompts = [] if shapes is None else shapes.list_prompts()

    def group_prompts(
        self, waiting: Sequence[LaneRequest], most: int
    ) -> Iterator[list[LaneRequest]]:
        """Requests whose prompts are computed together, in the order of their waiting.

        Args:
            waiting: those that a listener waits for first.
            most: positions of all of them, unless the first prompt alone has more.
        """
        left = list(waiting)
        taken = 0
        while left:
            length = self._pad_prompt(left[0])
            alike = [run for run in left if self._pad_prompt(run) <= length]
            group = alike[: max(self._list_prompt_batches(length))]
            if taken and taken + length * len(group) > most:
                return
            taken += length * len(group)
            left = [run for run in left if run not in group]
            yield group

    def plan_prompts(self, runs: Sequence[LaneRequest]) -> StepPlan:
        """One group, whose requests have lanes."""
        states, length = self._states, max(map(self._pad_prompt, runs))
        batch = pad_to(len(runs), self._list_prompt_batches(length))
        indices = np.zeros((len(PromptIndex), batch), np.int64)
        indices[PromptIndex.SLOT] = indices[PromptIndex.LANE] = states.scratch_slot
        for column, run in enumerate(runs):
            assert run.lane is not None
            may_end = int(states.min_frames[run.slot] == 0)
            indices[:, column] = run.slot, run.lane, run.prompt_len - 1, may_end
        kind = self._find_kind(runs)
        return StepPlan(True, runs, range(len(runs)), kind, length, indices)

    def plan_decode(self, used: Sequence[LaneRequest]) -> StepPlan | None:
        """The next position of each request that makes a frame; None: none does.

        Args:
            used: requests by lane. Whoever has another lane of the batch, now or from this step on,
                loses nothing: a position of it is written that is written again before it is read.
        """
        runs = [run for run in used if run.steps]
        if not runs:
            return None
        columns = [column for column, run in enumerate(used) if run.steps]
        batch, length = columns[-1] + 1, 1 + max(run.position for run in runs)
        if self._shapes is None:
            length = min(-(-length // _READ_AT_ONCE) * _READ_AT_ONCE, self._positions)
        else:
            batch, length = pad_to(batch, self._batches), pad_to(length, self._lengths)
        indices = np.zeros((len(DecodeIndex), batch), np.int64)
        indices[DecodeIndex.SLOT] = self._states.scratch_slot
        indices[DecodeIndex.POSITION] = self._positions - 1
        for column, run in enumerate(used[:batch]):
            if run.steps:
                indices[:, column] = self._index_position(run)
            elif run.position < self._positions:
                indices[DecodeIndex.POSITION, column] = run.position
        return StepPlan(False, runs, columns, self._find_kind(runs), length, indices)

    def _index_position(self, run: LaneRequest) -> tuple[int, ...]:
        """A column of `DecodeIndex`."""
        states, slot, position = self._states, run.slot, run.position
        row = min(position, int(states.last_row[slot]))
        may_end = run.frame >= states.min_frames[slot]
        return slot, position, row, run.frame - 1, int(may_end), run.frame

    def _find_kind(self, runs: Sequence[LaneRequest]) -> StepKind:
        states, slots = self._states, [run.slot for run in runs]
        sampled, penalized = states.is_sampled[slots], states.is_penalized[slots]
        return StepKind(
            bool(sampled[:, CODE_0].any()),
            bool(sampled[:, RESIDUAL].any()),
            bool(penalized[:, CODE_0].any()),
            bool(penalized[:, RESIDUAL].any()),
        )

    def _pad_prompt(self, run: LaneRequest) -> int:
        return pad_to(run.prompt_len, self._prompts or [run.prompt_len])

    def _list_prompt_batches(self, length: int) -> list[int]:
        return [1] if self._shapes is None else self._shapes.list_prompt_batches(length)
