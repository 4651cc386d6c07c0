"""One denoising update: guidance, then Euler's step.

Letters: N tokens, P numbers of a token.
"""

from __future__ import annotations

import torch


def guided(velocity: torch.Tensor, negative: torch.Tensor | None, scale: float) -> torch.Tensor:
    """Move a velocity away from that of the negative prompt, and keep each token's length.

    Args:
        velocity: [N, P] float32 of the prompt.
        negative: of the negative prompt; None: no guidance.
        scale: 1 has no effect.
    """
    if negative is None:
        return velocity
    moved = negative + scale * (velocity - negative)
    wanted, found = (
        torch.linalg.vector_norm(part, dim=-1, keepdim=True) for part in (velocity, moved)
    )
    return torch.as_tensor(moved * (wanted / found))


def euler(
    latents: torch.Tensor, velocity: torch.Tensor, share: float, following: float
) -> torch.Tensor:
    """[N, P] latents with the share of noise that follows, in float32."""
    # As the reference subtracts: in float32.
    difference = float(torch.tensor(following) - torch.tensor(share))
    return latents.float() + difference * velocity.float()


def finished(latents: torch.Tensor, velocity: torch.Tensor, share: float) -> torch.Tensor:
    """[N, P] latents of the picture that a step foresees."""
    return latents.float() - share * velocity.float()
