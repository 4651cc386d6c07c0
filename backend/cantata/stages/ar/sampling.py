"""How codes are drawn: scores of code 0 by request, and random numbers of the request alone.

A generator's state would have to survive batching, chunked prefill and preemption. A counter
needs none: the uniform number of (seed, frame, draw) is a hash of these three. The draws of a frame
are its codes, those of a talker's own law, and a last one for the decision to stop, where a talker
makes one. Scores are biased, held to a guide and reported row by row: a row's result depends on
that row alone.

Letters: R requests of this step, V codes, F frames, Q draws of a frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.model.embedding_source import CodeGuide

_SEED_SALT = 0x243F6A8885A308D3
_FRAME_STEP = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio's odd increment."""
_DRAW_STEP = np.uint64(0xD1B54A32D192ED03)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_MANTISSA_BITS = 24
_SCALE = np.float32(2.0**-_MANTISSA_BITS)


def draw_counter_uniforms(
    seed: int, num_frames: int, num_draws: int, first: int = 0
) -> torch.Tensor:
    """Uniform numbers of one request's frames.

    Args:
        seed: any integer; taken modulo 2**64.
        num_frames: F.
        num_draws: Q.
        first: index of the first of these frames.

    Returns:
        [F, Q] float32 in [0, 1), on the CPU.
    """
    # WHY NumPy: a call of torch takes several times as long as a thousand of these numbers.
    frame = np.arange(first + 1, first + num_frames + 1, dtype=np.uint64)[:, None]
    draw = np.arange(1, num_draws + 1, dtype=np.uint64)
    key = _mix(np.array([(seed ^ _SEED_SALT) & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64))
    bits = _mix(_mix(key + frame * _FRAME_STEP) + draw * _DRAW_STEP)
    return torch.from_numpy((bits >> np.uint64(64 - _MANTISSA_BITS)).astype(np.float32) * _SCALE)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64-bit integers whose every output bit depends on every input bit."""
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


@dataclass(frozen=True, slots=True)
class CodeLogprobs:
    """Natural logarithms of probabilities, of one request's new code 0."""

    chosen: float
    top: tuple[tuple[int, float], ...]
    """The likeliest codes with theirs, the likeliest first, as many as were asked for."""


def add_bias(
    scores: torch.Tensor,
    slots: Sequence[int],
    bias: Mapping[int, tuple[torch.Tensor, torch.Tensor]],
) -> torch.Tensor:
    """[R, V] float32 -> the same, or a new tensor if a slot's codes have a bias."""
    biased = [(row, bias[slot]) for row, slot in enumerate(slots) if slot in bias]
    if not biased:
        return scores
    scores = scores.clone()
    for row, (codes, added) in biased:
        scores[row].index_add_(0, codes, added)
    return scores


def hold_to_guides(
    scores: torch.Tensor, slots: Sequence[int], guides: Mapping[int, CodeGuide]
) -> torch.Tensor:
    """[R, V] float32 -> the same, or a new tensor in which codes that a guide forbids have no
    probability.

    Args:
        scores: of each slot.
        slots: [R], fewer than R if the last rows are padding.
        guides: of some slots.
    """
    held = [
        (row, allowed)
        for row, slot in enumerate(slots)
        if slot in guides and (allowed := guides[slot].allowed()) is not None
    ]
    if not held:
        return scores
    rows = torch.tensor([row for row, _ in held]).to(scores.device)
    forbidden = torch.from_numpy(~np.stack([allowed for _, allowed in held])).to(scores.device)
    scores = scores.clone()
    scores[rows] = scores[rows].masked_fill(forbidden, -torch.inf)
    return scores


def list_logprobs(
    scores: torch.Tensor, codes: torch.Tensor, num_top: Sequence[int]
) -> list[CodeLogprobs]:
    """[R, V] float scores and [R] int64 drawn codes -> what is told of each.

    Args:
        scores: as the talker made them.
        codes: the drawn ones.
        num_top: [R] how many of the likeliest are told.
    """
    likely = scores.float().log_softmax(dim=-1)
    chosen = likely.gather(1, codes[:, None])[:, 0].tolist()
    most = likely.topk(min(max(num_top), likely.shape[1]), dim=-1)
    pairs = zip(most.indices.tolist(), most.values.tolist(), strict=True)
    tops = [tuple(zip(*pair, strict=True)) for pair in pairs]
    return [
        CodeLogprobs(one, top[:count])
        for one, top, count in zip(chosen, tops, num_top, strict=True)
    ]
