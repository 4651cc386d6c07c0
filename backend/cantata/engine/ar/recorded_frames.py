"""The completion of frames as CUDA graphs by number of requests, recorded while the stage loads.

Letters: R requests of this step, D hidden size, Q codebooks, F frames.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Protocol

import torch
from torch.nn import functional

from cantata.contract.model.sampling import CodeSampling
from cantata.contract.model.talker import (
    FrameDraws,
    RecordableTalker,
    RepetitionPenalty,
    Talker,
)
from cantata.engine.ar.request_state import RequestStates
from cantata.stage_parts.row_graphs import RowGraphs


class Recordable(Talker, RecordableTalker, Protocol):
    """A talker that can be recorded."""


class RecordedFrames:
    """Completes frames as a talker's `complete_frames` does.

    Greedy and sampled steps, with and without a penalty, launch different kernels: each is recorded
    apart. A step that was not recorded is the talker's own.

    Args:
        talker: loaded.
        states: of its requests; no more than its slots are completed at once.
    """

    def __init__(self, talker: Recordable, states: RequestStates) -> None:
        self._talker = talker
        self._most_frames = states.frames.shape[1]
        most_requests = max(states.scratch_slot, talker.min_rows)
        device = states.frames.device
        self._graphs: dict[tuple[bool, bool], RowGraphs] = {}
        for is_sampled, is_penalized in product((True, False), repeat=2):
            function = partial(self._completed, is_sampled, is_penalized)
            graphs = RowGraphs(function, device, "the completion of frames")
            self._graphs[is_sampled, is_penalized] = graphs
            spare = self._tensors(*self._spare(states, is_sampled, is_penalized))
            if not graphs.capture(spare, most_requests):
                break

    def __call__(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, D] and [R] -> [R, Q], as `Talker.complete_frames`."""
        graphs = self._graphs.get((draws.is_sampled, draws.repetition is not None))
        inputs = self._tensors(hidden, code0, draws)
        if graphs is None or not graphs.holds(*inputs):
            return self._talker.complete_frames(hidden, code0, draws)
        return graphs(*inputs)

    def _tensors(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> tuple[torch.Tensor, ...]:
        """What a step depends on, [R, ...] each; the history in one shape for every length."""
        how = draws.sampling
        inputs = (hidden, code0, draws.uniforms, how.temperature, how.top_k, how.top_p)
        if draws.repetition is None:
            return inputs
        spoken = draws.repetition.spoken
        missing = self._most_frames - spoken.shape[1]
        whole = functional.pad(spoken, (0, 0, 0, missing), value=-1)
        return *inputs, whole, draws.repetition.penalty

    def _completed(
        self, is_sampled: bool, is_penalized: bool, *tensors: torch.Tensor
    ) -> torch.Tensor:
        """[R, Q]; the inverse of `_tensors`, then the talker."""
        hidden, code0, uniforms, temperature, top_k, top_p, *history = tensors
        sampling = CodeSampling(temperature, top_k, top_p)
        penalty = RepetitionPenalty(*history) if is_penalized else None
        draws = FrameDraws(uniforms, sampling, is_sampled, penalty)
        return self._talker.frames_of(hidden, code0, draws)

    def _spare(
        self, states: RequestStates, is_sampled: bool, is_penalized: bool
    ) -> tuple[torch.Tensor, torch.Tensor, FrameDraws]:
        """A request that is nobody's: zeros, greedy, without history."""
        scores = states.temperature[-1:, 0]
        hidden = states.rows.new_zeros(1, states.hidden_size)
        code0 = states.frames.new_zeros(1)
        uniforms = states.uniforms.new_zeros(1, states.uniforms.shape[2])
        sampling = CodeSampling(
            torch.zeros_like(scores), states.top_k.new_zeros(1), torch.ones_like(scores)
        )
        penalty = None
        if is_penalized:
            spoken = states.frames.new_full((1, 1, states.frames.shape[2]), -1)
            penalty = RepetitionPenalty(spoken, torch.ones_like(scores))
        return hidden, code0, FrameDraws(uniforms, sampling, is_sampled, penalty)
