"""An engine step of a plain talker, whole, as functions of one small tensor of indices.

From the requests' slots to their frames: input rows, backbone, scores, penalties, code 0, the other
codes, and the frames' places in the history. They read no value on the host and write only into
what is there before, so each can be recorded as one CUDA graph. Their frames are those of
`talker_step`, which knows more kinds of talkers and asks the host between its parts.

Letters: B requests of this step, T positions of a prompt, D hidden size, V codes, Q codebooks, F
frames of history, L positions that attention reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import torch

from cantata.contract.model.plain_talker import PlainTalker
from cantata.contract.model.sampling import (
    CodeSampling,
    penalize_repetition,
    penalize_use,
    sample_codes,
)
from cantata.contract.model.talker import FrameDraws, RepetitionPenalty
from cantata.stages.ar.lane_memory import LaneMemory
from cantata.stages.ar.request_state import CODE_0, RESIDUAL, RequestStates


class DecodeIndex(IntEnum):
    """Rows of the indices of a decode, [6, B] int64; column b is for lane b."""

    SLOT = 0
    """The scratch slot for a lane that only takes part."""
    POSITION = 1
    ROW = 2
    """Of the slot's conditioning rows."""
    FED_BACK = 3
    """Index of the frame that the position also takes; -1: none."""
    MAY_END = 4
    """1 if the end code may be drawn."""
    FRAME = 5
    """Index of the frame that the position makes."""


class PromptIndex(IntEnum):
    """Rows of the indices of prompts, [4, B] int64."""

    SLOT = 0
    LANE = 1
    LAST = 2
    """The prompt's last position; those behind it are padding."""
    MAY_END = 3


@dataclass(frozen=True, slots=True)
class StepKind:
    """Which kernels the codes of a step need; those of a kind that covers another do for it, too,
    and give the same codes."""

    samples_first: bool
    """A code 0 is drawn; else all are greedy."""
    samples_others: bool
    penalizes_first: bool
    penalizes_others: bool

    def covers(self, other: StepKind) -> bool:
        """Whether it has all that the other has."""
        return (
            self.samples_first >= other.samples_first
            and self.samples_others >= other.samples_others
            and self.penalizes_first >= other.penalizes_first
            and self.penalizes_others >= other.penalizes_others
        )


EVERY_KIND = StepKind(True, True, True, True)
"""Covers all others."""


@dataclass(frozen=True, slots=True)
class _Making:
    """The requests whose frames are made, [B] each."""

    slot: torch.Tensor
    frame: torch.Tensor
    may_end: torch.Tensor
    """bool."""


class SlotSteps:
    """The functions.

    Args:
        talker: whose frames they make.
        states: of its requests.
        memory: keys and values of as many lanes as there are slots, and one that is nobody's.
    """

    def __init__(self, talker: PlainTalker, states: RequestStates, memory: LaneMemory) -> None:
        self._talker, self._states, self._memory = talker, states, memory
        prompt_codes = torch.tensor(talker.prompt_codes, dtype=torch.int64)
        self._prompt_codes = prompt_codes.to(states.frames.device)

    def decode(self, kind: StepKind, longest: int, indices: torch.Tensor) -> torch.Tensor:
        """One position of each of the first lanes.

        Args:
            kind: covers what the requests need.
            longest: L, greater than every position that makes a frame.
            indices: [6, B] int64, see `DecodeIndex`.

        Returns:
            [B, Q] int32.
        """
        talker, states = self._talker, self._states
        slot, position, row, fed_back, may_end, frame = indices.unbind()
        rows = states.rows[slot, row]
        embedded = talker.embed_frames(states.frames[slot, fed_back.clamp(min=0)])
        fed = rows + embedded.to(rows.dtype)
        rows = torch.where(fed_back[:, None] >= 0, fed, rows)
        self._memory.plan_decode(position, longest)
        hidden = talker.forward_rows(rows, position, self._memory)
        return self._make_frames(kind, longest, hidden, _Making(slot, frame, may_end > 0))

    def prefill(self, kind: StepKind, length: int, indices: torch.Tensor) -> torch.Tensor:
        """The prompts of some requests, each padded to one length, and their first frames.

        Args:
            kind: covers what the requests need.
            length: T.
            indices: [4, B] int64, see `PromptIndex`.

        Returns:
            [B, Q] int32.
        """
        talker, states = self._talker, self._states
        slot, lane, last, may_end = indices.unbind()
        rows = states.rows[slot, :length]
        positions = torch.arange(length, device=slot.device).repeat(len(slot))
        self._memory.plan_prompts(lane, length)
        hidden = talker.forward_rows(rows.flatten(0, 1), positions, self._memory)
        every = torch.arange(len(slot), device=slot.device)
        asked = hidden.view(len(slot), length, -1)[every, last]
        making = _Making(slot, torch.zeros_like(slot), may_end > 0)
        return self._make_frames(kind, 1, asked, making)

    def _make_frames(
        self, kind: StepKind, longest: int, hidden: torch.Tensor, making: _Making
    ) -> torch.Tensor:
        """[B, D] hidden states -> [B, Q] int32 frames, which are remembered, too.

        Args:
            longest: F, at least as many as a request has made.
        """
        talker, states, slot = self._talker, self._states, making.slot
        spoken = self._gather_history(making, longest)
        uniforms = states.uniforms[slot, making.frame]
        scores = talker.compute_logits(hidden).float()
        if kind.penalizes_first:
            scores = self._penalize(scores, spoken[:, :, 0], slot)
        if talker.end_code is not None:
            scores = scores.clone()
            ends = scores[:, talker.end_code]
            scores[:, talker.end_code] = torch.where(making.may_end, ends, -torch.inf)
        code0 = scores.argmax(dim=-1)
        if kind.samples_first:
            code0 = sample_codes(scores, uniforms[:, 0], self._gather_sampling(slot, CODE_0))
        penalty = states.repetition_penalty[slot, RESIDUAL]
        draws = FrameDraws(
            uniforms,
            self._gather_sampling(slot, RESIDUAL),
            kind.samples_others,
            RepetitionPenalty(spoken, penalty) if kind.penalizes_others else None,
        )
        frames = talker.make_frames(hidden, code0, draws)
        states.frames[slot, making.frame] = frames
        return frames.int()

    def _gather_history(self, making: _Making, longest: int) -> torch.Tensor:
        """[B, F, Q] the frames before these; -1 where there are fewer."""
        spoken = self._states.frames[making.slot, :longest]
        is_old = torch.arange(longest, device=spoken.device) < making.frame[:, None]
        return torch.where(is_old[:, :, None], spoken, -1)

    def _penalize(
        self, scores: torch.Tensor, spoken: torch.Tensor, slot: torch.Tensor
    ) -> torch.Tensor:
        """[B, V] scores and [B, F] codes 0 -> [B, V], less for codes that were used."""
        states = self._states
        repeated = torch.cat([self._prompt_codes.expand(len(spoken), -1), spoken], dim=1)
        scores = penalize_repetition(scores, repeated, states.repetition_penalty[slot, CODE_0])
        presence, frequency = states.use_penalty[slot].unbind(1)
        return penalize_use(scores, spoken, presence, frequency)

    def _gather_sampling(self, slot: torch.Tensor, level: int) -> CodeSampling:
        states = self._states
        return CodeSampling(
            states.temperature[slot, level], states.top_k[slot, level], states.top_p[slot, level]
        )
