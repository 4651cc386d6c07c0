"""The completion of frames as CUDA graphs by number of requests, recorded while the stage loads.

Letters: R requests of this step, D hidden size, Q codebooks, E columns of latents, F frames.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import torch
from torch.nn import functional

from cantata.contract.model.sampling import CodeSampling
from cantata.contract.model.talker import FrameDraws, RepetitionPenalty, Talker
from cantata.stages.ar.request_state import RequestStates
from cantata.stages.common.graphs import RowGraphs, make_pool

logger = logging.getLogger(__name__)

WHAT = "the completion of frames"
LATENT_DRAWS = ("noise", "previous", "options")
"""Of `FrameDraws`: what frames of latents depend on; there may be no options."""


@dataclass(frozen=True, slots=True)
class KernelVariant:
    """Steps that launch the same kernels."""

    is_sampled: bool = False
    is_penalized: bool = False
    steps: int | None = None
    """Steps of each frame; None: the talker's frames take none."""


class RecordedFrames:
    """Completes frames as a talker's `complete_frames` does.

    Greedy and sampled steps, with and without a penalty, launch different kernels, as do frames of
    other numbers of steps: each kind is recorded apart. What was not recorded is the talker's own.

    Args:
        talker: loaded, and recordable.
        states: of its requests; no more than its slots are completed at once.
    """

    def __init__(self, talker: Talker, states: RequestStates) -> None:
        self._talker = talker
        self._max_frames = states.frames.shape[1]
        self._known = {kind.steps for kind in iterate_kinds(talker)}
        """Numbers of steps that need no line in the log: recorded, or named there already."""
        max_requests = max(states.scratch_slot, talker.min_rows)
        device = states.frames.device
        self._graphs: dict[KernelVariant, RowGraphs] = {}
        pool = make_pool(device)
        for kind in iterate_kinds(talker):
            graphs = RowGraphs(partial(self._complete_step, kind), device, WHAT, pool)
            self._graphs[kind] = graphs
            spare = self._collect_tensors(*_build_spare(talker, states, kind))
            if not graphs.capture(spare, max_requests):
                break

    def __call__(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, D] and [R] -> [R, Q] or [R, E], as `Talker.complete_frames`."""
        counts = set(draws.steps or ()) - {0}
        if len(counts) < 2:
            # Rows that pad take part as they are: they are nobody's.
            return self._run_alike(hidden, code0, draws, *counts)
        assert draws.steps is not None
        assert draws.previous is not None
        recorded = counts & {kind.steps for kind in self._graphs}
        groups: dict[int | None, list[int]] = {}
        for row, count in enumerate(draws.steps):
            if count:
                groups.setdefault(count if count in recorded else None, []).append(row)
        output = torch.zeros_like(draws.previous)
        for steps, rows in groups.items():
            index = torch.tensor(rows).to(hidden.device, non_blocking=True)
            part = (hidden[index], code0[index], _select_draws(draws, index, rows))
            output[index] = (
                self._run_plain(*part) if steps is None else self._run_alike(*part, steps)
            )
        return output

    def _run_alike(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws, steps: int | None = None
    ) -> torch.Tensor:
        """Frames of one kind."""
        kind = KernelVariant(draws.is_sampled, draws.repetition is not None, steps)
        graphs, inputs = self._graphs.get(kind), self._collect_tensors(hidden, code0, draws)
        if graphs is None or not graphs.holds(*inputs):
            return self._run_plain(hidden, code0, draws)
        return graphs(*inputs)

    def _run_plain(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        for count in sorted(set(draws.steps or ()) - {0} - self._known):
            self._known.add(count)
            recorded = ", ".join(str(kind.steps) for kind in self._graphs) or "none"
            logger.info(
                "%s: no CUDA graph of %d steps, so it runs without; recorded are those of %s",
                *(WHAT, count, recorded),
            )
        return self._talker.complete_frames(hidden, code0, draws)

    def _collect_tensors(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> tuple[torch.Tensor, ...]:
        """What a step depends on, [R, ...] each; the history in one shape for every length."""
        how = draws.sampling
        inputs = (hidden, code0, draws.uniforms, how.temperature, how.top_k, how.top_p)
        latents = (getattr(draws, name) for name in LATENT_DRAWS)
        inputs += tuple(tensor for tensor in latents if tensor is not None)
        if draws.repetition is None:
            return inputs
        spoken = draws.repetition.spoken
        missing = self._max_frames - spoken.shape[1]
        whole = functional.pad(spoken, (0, 0, 0, missing), value=-1)
        return *inputs, whole, draws.repetition.penalty

    def _complete_step(self, kind: KernelVariant, *tensors: torch.Tensor) -> torch.Tensor:
        """[R, Q] or [R, E]; the inverse of `_collect_tensors`, then the talker."""
        hidden, code0, uniforms, temperature, top_k, top_p, *others = tensors
        sampling = CodeSampling(temperature, top_k, top_p)
        draws = FrameDraws(uniforms, sampling, kind.is_sampled)
        if self._talker.latent_size:
            latents: dict[str, Any] = dict(zip(LATENT_DRAWS, others, strict=False))
            draws = replace(draws, **latents)
        elif kind.is_penalized:
            draws = replace(draws, repetition=RepetitionPenalty(*others))
        if kind.steps is not None:
            draws = replace(draws, steps=(kind.steps,) * len(hidden))
        return self._talker.make_frames(hidden, code0, draws)


def record_embedding(talker: Talker, states: RequestStates) -> RowGraphs:
    """The embedding of latents, which is a network, for one frame of each request."""
    graphs = RowGraphs(talker.embed_frames, states.frames.device, "the embedding of frames")
    most = max(states.scratch_slot, talker.min_rows)
    graphs.capture((states.frames.new_zeros(1, states.frames.shape[2]),), most)
    return graphs


def iterate_kinds(talker: Talker) -> Iterator[KernelVariant]:
    """What is worth recording of this talker."""
    if talker.usual_steps:
        yield from (KernelVariant(steps=count) for count in talker.usual_steps)
    elif talker.latent_size:
        yield KernelVariant()
    else:
        penalized = (True, False) if talker.penalizes_residual else (False,)
        yield from (KernelVariant(*flags) for flags in product((True, False), penalized))


def _build_spare(
    talker: Talker, states: RequestStates, kind: KernelVariant
) -> tuple[torch.Tensor, torch.Tensor, FrameDraws]:
    """A request that is nobody's: zeros, greedy, without history."""
    scores, frame = states.temperature[-1:, 0], states.frames[-1:, 0]
    hidden = states.rows.new_zeros(1, states.hidden_size)
    code0 = torch.zeros(1, dtype=torch.int64, device=hidden.device)
    sampling = CodeSampling(
        torch.zeros_like(scores), states.top_k.new_zeros(1), torch.ones_like(scores)
    )
    draws = FrameDraws(torch.zeros_like(states.uniforms[-1:, 0]), sampling, kind.is_sampled)
    if kind.is_penalized:
        spoken = torch.full_like(frame[:, None], -1)
        draws = replace(draws, repetition=RepetitionPenalty(spoken, torch.ones_like(scores)))
    if talker.latent_size:
        noise, previous = torch.zeros_like(states.noise[-1:, 0]), torch.zeros_like(frame)
        draws = replace(draws, noise=noise, previous=previous)
    if talker.num_frame_options:
        draws = replace(draws, options=torch.zeros_like(states.frame_options[-1:]))
    return hidden, code0, draws


def _select_draws(draws: FrameDraws, index: torch.Tensor, rows: Sequence[int]) -> FrameDraws:
    """The steps of these rows alone."""
    assert draws.steps is not None
    how = draws.sampling
    latents = {name: getattr(draws, name) for name in LATENT_DRAWS}
    return FrameDraws(
        uniforms=draws.uniforms[index],
        sampling=CodeSampling(how.temperature[index], how.top_k[index], how.top_p[index]),
        is_sampled=draws.is_sampled,
        steps=tuple(draws.steps[row] for row in rows),
        **{name: None if whole is None else whole[index] for name, whole in latents.items()},
    )
