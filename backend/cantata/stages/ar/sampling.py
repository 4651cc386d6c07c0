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

from cantata.contract.model.embedding_source import CodeGuide

_SEED_SALT = 0x243F6A8885A308D3
_FRAME_STEP = -7046029254386353131  # 0x9E3779B97F4A7C15, the golden ratio's odd increment
_DRAW_STEP = -3335678366873096957  # 0xD1B54A32D192ED03
_MIX_1 = -4658895280553007687  # 0xBF58476D1CE4E5B9
_MIX_2 = -7723592293110705685  # 0x94D049BB133111EB
_MANTISSA_BITS = 24


def draw_counter_uniforms(seed: int, num_frames: int, num_draws: int) -> torch.Tensor:
    """Uniform numbers of one request's frames.

    Args:
        seed: any integer; taken modulo 2**64.
        num_frames: F.
        num_draws: Q.

    Returns:
        [F, Q] float32 in [0, 1), on the CPU.
    """
    frame = torch.arange(1, num_frames + 1, dtype=torch.int64)[:, None]
    draw = torch.arange(1, num_draws + 1, dtype=torch.int64)[None, :]
    key = _mix(torch.tensor(_to_int64(seed ^ _SEED_SALT)))
    bits = _mix(_mix(key + frame * _FRAME_STEP) + draw * _DRAW_STEP)
    return _shift_right(bits, 64 - _MANTISSA_BITS).to(torch.float32) * 2.0**-_MANTISSA_BITS


def _mix(x: torch.Tensor) -> torch.Tensor:
    """A bijection of 64-bit integers whose every output bit depends on every input bit."""
    x = (x ^ _shift_right(x, 30)) * _MIX_1
    x = (x ^ _shift_right(x, 27)) * _MIX_2
    return x ^ _shift_right(x, 31)


def _shift_right(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Logical shift; torch's own keeps the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _to_int64(value: int) -> int:
    """The two's complement reading of an integer's lowest 64 bits."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


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
