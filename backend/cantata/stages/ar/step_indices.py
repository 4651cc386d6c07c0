"""What an engine step reads and writes: rows, frames and slots, found on the host when vLLM has
scheduled it, and uploaded in one copy.

Letters: N positions of this step, R requests of this step, R' = max(R, min_rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.model.upload import upload_together
from cantata.stages.ar.request_state import RequestStates


@dataclass(frozen=True, slots=True)
class ScheduledRows:
    """What the scheduler chose for this step, in the runner's order of requests."""

    slots: NDArray[np.int64]
    """[R]"""
    first_position: NDArray[np.int64]
    """[R]: the first position computed in this step."""
    num_positions: NDArray[np.int64]
    """[R]: how many are computed, at least 1."""

    @property
    def end_position(self) -> NDArray[np.int64]:
        """[R]: the position after the last one that is computed."""
        return self.first_position + self.num_positions

    def list_positions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[N] slots and [N] positions, requests one after the other."""
        ends = np.cumsum(self.num_positions)
        starts = np.repeat(self.first_position - (ends - self.num_positions), self.num_positions)
        return np.repeat(self.slots, self.num_positions), starts + np.arange(ends[-1])

    def count_new(self, num_exported: NDArray[np.int64]) -> NDArray[np.int64]:
        """[R]: positions whose rows have not left yet, of all slots' numbers of those that have."""
        first = np.maximum(self.first_position, num_exported)
        count: NDArray[np.int64] = np.maximum(0, self.end_position - first)
        return count


@dataclass(frozen=True, slots=True)
class InputIndices:
    """Where input rows come from, on the device; int64, as all indices here."""

    slot: torch.Tensor
    """[N], as the next two."""
    position: torch.Tensor
    row: torch.Tensor
    """Of the slot's conditioning rows."""
    fed_slot: torch.Tensor
    """[F], as the next two: of the positions that take a frame, too."""
    fed_frame: torch.Tensor
    fed_place: torch.Tensor
    """Which of the N positions."""


@dataclass(frozen=True, slots=True)
class FrameIndices:
    """Whose frames are made, and where they go, on the device. What pads has the scratch slot."""

    slot: torch.Tensor
    """[R'], as the next two."""
    frame: torch.Tensor
    target: torch.Tensor
    """The slot whose frame it becomes: the scratch slot where vLLM discards it."""
    early: torch.Tensor
    """[L]: which of the R' must not end."""
    exported: torch.Tensor
    """[X]: which of the N positions' rows leave."""


@dataclass(frozen=True, slots=True)
class StepIndices:
    """One step, on the host and on the device."""

    scheduled: ScheduledRows
    slots: NDArray[np.int64]
    """[R'], as the next."""
    frame: NDArray[np.int64]
    """The index of each one's frame."""
    is_new: NDArray[np.bool_]
    """[R]: whether the request makes a frame that it did not have."""
    num_leaving: NDArray[np.int64]
    """[R]: rows that leave."""
    inputs: InputIndices
    frames: FrameIndices

    @classmethod
    def build(
        cls, scheduled: ScheduledRows, states: RequestStates, min_rows: int, *, exports: bool
    ) -> Self:
        """Find what a step touches, as the requests are now.

        Args:
            scheduled: by vLLM.
            states: of the requests.
            min_rows: see `Talker.min_rows`.
            exports: whether rows leave.
        """
        slot, position = scheduled.list_positions()
        fed_frame = position - states.prompt_len[slot]
        fed = np.flatnonzero(fed_frame >= 0)
        inputs = (slot, position, np.minimum(position, states.last_row[slot]))
        feedback = (slot[fed], fed_frame[fed], fed)

        count = len(scheduled.slots)
        made = scheduled.end_position - states.prompt_len[scheduled.slots]
        # A chunk that ends inside the prompt has a negative frame, one that ends inside the
        # history of a recompute has an old one.
        is_new = made == states.num_frames[scheduled.slots]
        padding = (0, max(min_rows - count, 0))
        slots = np.pad(scheduled.slots, padding, constant_values=states.scratch_slot)
        frame = np.pad(np.maximum(made, 0), padding)
        target = slots.copy()
        target[:count][~is_new] = states.scratch_slot
        early = np.flatnonzero(frame < states.min_frames[slots])
        leaving = scheduled.count_new(states.num_exported[scheduled.slots])
        leaving[scheduled.slots == states.scratch_slot] = 0
        leaving *= exports
        exported = _list_last_places(scheduled.num_positions, leaving)

        frames = (slots, frame, target, early, exported)
        there = _upload([*inputs, *feedback, *frames], states.frames.device)
        split = len(fields(InputIndices))
        on_device = InputIndices(*there[:split]), FrameIndices(*there[split:])
        return cls(scheduled, slots, frame, is_new, leaving, *on_device)


def _list_last_places(
    num_positions: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """[sum of `counts`]: which of the N positions are the last `counts` of each request."""
    if not counts.any():
        return np.zeros(0, dtype=np.int64)
    ends = np.cumsum(num_positions)
    places = [np.arange(end - count, end) for end, count in zip(ends, counts, strict=True)]
    return np.concatenate(places)


def _upload(indices: Sequence[NDArray[np.int64]], device: torch.device) -> list[torch.Tensor]:
    return upload_together([torch.from_numpy(each) for each in indices], device)
