"""Draws codes, in the same way for every codebook of a frame, in the engine and in the models.

Letters: R requests of this step, V codes, F frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


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
        logits: [R, V] float32.
        uniforms: [R] float32 in [0, 1).
        sampling: temperature, top-k and top-p by request.

    Returns:
        [R] int64.
    """
    greedy = sampling.temperature <= 0
    temperature = torch.where(greedy, 1.0, sampling.temperature)
    probs, order = torch.softmax(logits / temperature[:, None], dim=-1).sort(
        dim=-1, descending=True, stable=True
    )
    rank = torch.arange(logits.shape[-1], device=logits.device)
    top_k = torch.where(sampling.top_k > 0, sampling.top_k, logits.shape[-1])
    probs = probs * (rank < top_k[:, None])
    total = probs.cumsum(dim=-1)
    # Top-p is a share of what top-k leaves, as in Transformers and vLLM.
    inside = total - probs < sampling.top_p[:, None] * total[:, -1:]
    kept = (rank < top_k[:, None]) & (inside | (rank == 0))
    cumulative = (probs * kept).cumsum(dim=-1)
    chosen = (cumulative <= uniforms[:, None] * cumulative[:, -1:]).sum(dim=-1)
    # A uniform just below 1 may round up to the total: the last kept code takes it.
    chosen = torch.minimum(chosen, kept.sum(dim=-1) - 1)
    sampled = order.gather(-1, chosen[:, None]).squeeze(-1)
    return torch.where(greedy, logits.argmax(dim=-1), sampled)
