"""The scores of codes 0 as single requests want them: with a bias, held to a guide, told.

A row's result depends on that row alone.

Letters: R requests of this step, V codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cantata.contract.model.code_guide import CodeGuide


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
