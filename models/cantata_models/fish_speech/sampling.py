"""How codes are drawn.

Both filters look at the plain distribution, the temperature comes after them: most programs do it
the other way round. Published programs take the code with the largest p / -ln u, u uniform for
each code: a draw from p. Here one uniform number goes through the inverse CDF, the same
distribution with one number for each code of a frame.

Letters: R requests, V codes, F frames, Q codebooks.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from cantata.contract.model.sampling import CodeSampling, penalize_repetition

RAS_FRAMES = 10
"""S2 looks for repetition in so many last codes (repetition-aware sampling: Chen et al., 2024,
VALL-E 2)."""
RAS_TEMPERATURE, RAS_TOP_P = 1.0, 0.9
"""How a repeated code is drawn again."""
PENALTY_FRAMES = 16
"""S1 penalizes the codes of so many last frames, of which the first frame is never one. While there
are fewer, the published program fills its window with zeros: code 0 counts as said."""


def draw_codes(
    scores: torch.Tensor, uniforms: torch.Tensor, sampling: CodeSampling
) -> torch.Tensor:
    """Draw one code per request. A row's code depends on that row alone.

    A code is left out if the most likely codes up to it have more than top-p of all probability,
    or if it is not among the top-k; the most likely one stays.

    Args:
        scores: [R, V] float32.
        uniforms: [R] float32 in [0, 1).
        sampling: by request; temperature 0 takes the best code.

    Returns:
        [R] int64.
    """
    greedy = sampling.temperature <= 0
    temperature = torch.where(greedy, 1.0, sampling.temperature)[:, None]
    ranked, order = scores.sort(dim=-1, descending=True, stable=True)
    rank = torch.arange(scores.shape[-1], device=scores.device)
    top_k = torch.where(sampling.top_k > 0, sampling.top_k, scores.shape[-1])[:, None]
    inside = ranked.softmax(dim=-1).cumsum(dim=-1) <= sampling.top_p[:, None]
    kept = (inside & (rank < top_k)) | (rank == 0)
    weights = (ranked / temperature).masked_fill(~kept, -torch.inf).softmax(dim=-1)
    cumulative = weights.cumsum(dim=-1)
    chosen = (cumulative <= uniforms[:, None] * cumulative[:, -1:]).sum(dim=-1)
    # A uniform just below 1 may round up to the total: the last kept code takes it.
    chosen = torch.minimum(chosen, kept.sum(dim=-1) - 1)
    drawn = order.gather(-1, chosen[:, None]).squeeze(-1)
    return torch.where(greedy, scores.argmax(dim=-1), drawn)


def draw_unrepeated(
    scores: torch.Tensor,
    uniforms: torch.Tensor,
    sampling: CodeSampling,
    recent: torch.Tensor,
    end_code: int,
) -> torch.Tensor:
    """Draw code 0 as S2 does: a code that was just said is drawn again, with more variety.

    Args:
        scores: [R, V] float32.
        uniforms: [R, 2] float32: of the draw, and of the second one.
        sampling: of the first draw.
        recent: [R, RAS_FRAMES + 1] int64 last codes 0, the newest last; -1 before the first.
        end_code: which may repeat.

    Returns:
        [R] int64.
    """
    drawn = draw_codes(scores, uniforms[:, 0], sampling)
    # The first frame's code never counts; what has no code before it is the first.
    window = torch.where(recent[:, :-1] < 0, -1, recent[:, 1:])
    repeated = (window == drawn[:, None]).any(dim=1) & (drawn != end_code)
    repeated &= sampling.temperature > 0
    varied = replace(
        sampling,
        temperature=torch.full_like(sampling.temperature, RAS_TEMPERATURE),
        top_p=torch.full_like(sampling.top_p, RAS_TOP_P),
    )
    return torch.where(repeated, draw_codes(scores, uniforms[:, 1], varied), drawn)


def penalize_recent(
    scores: torch.Tensor, spoken: torch.Tensor, penalty: torch.Tensor
) -> torch.Tensor:
    """Make a residual codebook's codes of the last frames less likely, as S1 does.

    Args:
        scores: [R, V] float32.
        spoken: [R, F] int64 this codebook's codes; -1 behind them.
        penalty: [R] float32.

    Returns:
        [R, V] float32.
    """
    frames = (spoken >= 0).sum(dim=1, keepdim=True)
    place = torch.arange(spoken.shape[1], device=spoken.device)
    recent = torch.where(place >= (frames - PENALTY_FRAMES).clamp(min=1), spoken, -1)
    padding = torch.where((frames > 0) & (frames <= PENALTY_FRAMES), 0, -1)
    recent = torch.cat((recent, padding), dim=1)
    # Codes that cannot be chosen have no score.
    return penalize_repetition(scores, recent.masked_fill(recent >= scores.shape[1], -1), penalty)
