"""Converts codes to latents."""

from __future__ import annotations

import torch
from torch.nn import functional


def to_latents(codebooks: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """Sums each frame's entries, one per codebook, in the codebooks' order.

    Args:
        codebooks: [Q, V, Z] float.
        codes: [..., Q] int64.

    Returns:
        [..., Z].
    """
    books, size, width = codebooks.shape
    entries = codes + size * torch.arange(books, device=codes.device)
    table = codebooks.reshape(books * size, width)
    total = functional.embedding_bag(entries.reshape(-1, books), table, mode="sum")
    return total.view(*codes.shape[:-1], width)
