"""The noise that a request's patches begin with, as the published program draws it.

That is one `torch.randn` of [1, C, P] for each patch, after `torch.manual_seed`, on a CPU.

Letters: F patches, P latents of a patch, C numbers of a latent.
"""

from __future__ import annotations

import torch

NORMAL_BLOCK = 16
"""torch makes so many normal numbers at a time; draws of whole blocks follow each other."""


def draw_noise(seed: int, patches: int, latent_dim: int, patch_size: int) -> torch.Tensor:
    """Return [F, P * C] float32. The first patches' noise is the same for any F."""
    generator = torch.Generator().manual_seed(seed)
    at_once = patches if latent_dim * patch_size % NORMAL_BLOCK == 0 else 1
    drawn = [
        torch.randn(
            (at_once, latent_dim, patch_size),
            generator=generator,
            dtype=torch.float32,
            device="cpu",
        )
        for _ in range(patches // at_once)
    ]
    return torch.cat(drawn).transpose(1, 2).flatten(1)
