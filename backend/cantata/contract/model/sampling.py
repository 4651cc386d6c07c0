"""Draws codes, in the same way for every codebook of a frame, in the engine and in the models.

Letters: R requests of this step, V codes, F frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cantata.contract.model.fused_operators import draw_codes


@dataclass(frozen=True, slots=True)
class CodeSampling:
    """How codes are drawn, one entry per request."""

    temperature: torch.Tensor
    """[R] float32; 0 is greedy."""
    top_k: torch.Tensor
    """[R] int64; 0 means all."""
    top_p: torch.Tensor
    """[R] float32, applied after top-k; 1 means all."""


def penalize_repetition(
    logits: torch.Tensor, spoken: torch.Tensor, penalty: torch.Tensor
) -> torch.Tensor:
    """Make codes that a request has already used less likely.

    Args:
        logits: [R, V] float32.
        spoken: [R, F] int64 earlier codes; -1 where there is none.
        penalty: [R] float32; 1 changes nothing, more divides positive and multiplies negative
            scores.

    Returns:
        [R, V] float32, a new tensor.
    """
    none = logits.shape[1]
    seen = torch.zeros(logits.shape[0], none + 1, dtype=torch.bool, device=logits.device)
    seen.scatter_(1, torch.where(spoken < 0, none, spoken), True)
    factor = penalty[:, None]
    penalized = torch.where(logits > 0, logits / factor, logits * factor)
    return torch.where(seen[:, :-1], penalized, logits)


def penalize_use(
    logits: torch.Tensor, used: torch.Tensor, presence: torch.Tensor, frequency: torch.Tensor
) -> torch.Tensor:
    """Make codes less likely by how often a request has used them, as OpenAI's API defines it.

    Args:
        logits: [R, V] float32.
        used: [R, F] int64 earlier codes; -1 where there is none.
        presence: [R] float32, taken once from the score of each of them; 0 changes nothing.
        frequency: [R] float32, taken as often as the code was used.

    Returns:
        [R, V] float32, a new tensor.
    """
    none = logits.shape[1]
    counts = torch.zeros(logits.shape[0], none + 1, device=logits.device)
    counts.scatter_add_(1, torch.where(used < 0, none, used), torch.ones_like(used).float())
    counts = counts[:, :-1]
    return logits - frequency[:, None] * counts - presence[:, None] * (counts > 0)


def sample_codes(
    logits: torch.Tensor, uniforms: torch.Tensor, sampling: CodeSampling
) -> torch.Tensor:
    """Draw one code per request by inverse CDF over its most likely codes.

    A row's code depends on that row alone.

    Args:
        logits: [R, V], of which the draw is made in float32.
        uniforms: [R] float32 in [0, 1).
        sampling: temperature, top-k and top-p by request.

    Returns:
        [R] int64.
    """
    return draw_codes(logits, uniforms, sampling.temperature, sampling.top_k, sampling.top_p)
