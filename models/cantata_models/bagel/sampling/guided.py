"""Guidance by what is in the context: away from the velocity without the prompt, and away from that
without the pictures; then the velocity is made no longer than it was.

Source: `_forward_flow` of the publisher's bagel.py.

Letters: N tokens, P numbers of a token.
"""

from __future__ import annotations

import torch

from cantata_models.bagel.sampling.guidance import Guidance, Renorm

TINY = 1e-8


def guided(
    guidance: Guidance,
    full: torch.Tensor,
    no_text: torch.Tensor,
    no_images: torch.Tensor | None,
) -> torch.Tensor:
    """[N, P] float32 velocities of the branches -> the one to follow."""
    moved = no_text + guidance.text * (full - no_text)
    if guidance.renorm is Renorm.TEXT_CHANNEL:
        return _seen(guidance, moved * _factor(guidance, full, moved, dim=-1), no_images)
    moved = _seen(guidance, moved, no_images)
    dim = -1 if guidance.renorm is Renorm.CHANNEL else None
    return moved * _factor(guidance, full, moved, dim)


def _seen(
    guidance: Guidance, velocity: torch.Tensor, no_images: torch.Tensor | None
) -> torch.Tensor:
    if no_images is None:
        return velocity
    return no_images + guidance.image * (velocity - no_images)


def _factor(
    guidance: Guidance, kept: torch.Tensor, moved: torch.Tensor, dim: int | None
) -> torch.Tensor:
    wanted, found = (
        torch.linalg.vector_norm(part, dim=dim, keepdim=True) for part in (kept, moved)
    )
    return torch.clamp(wanted / (found + TINY), min=guidance.least, max=1.0)
