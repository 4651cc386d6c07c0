"""What a decoder takes as frames: codes or latents.

Letters: T frames, Q codebooks, E columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Codes, Payload, Rows
from cantata.contract.model.codec import Decoder

Frames = Codes | Rows


def problem_with(payload: Payload, decoder: Decoder) -> str | None:
    """Why a decoder cannot take a payload; None: it can."""
    if decoder.latent_size:
        return _problem_with_latents(payload, decoder.latent_size)
    return _problem_with_codes(payload, decoder)


def to_tensor(frames: Sequence[NDArray[Any]]) -> torch.Tensor:
    """T frames -> [T, Q] int64 codes or [T, E] float32 latents; or B streams' -> [B, T, Q or E]."""
    stacked = torch.from_numpy(np.stack(frames))
    return stacked if stacked.is_floating_point() else stacked.long()


def _problem_with_codes(payload: Payload, decoder: Decoder) -> str | None:
    if not isinstance(payload, Codes):
        return f"expected Codes, got {type(payload).__name__}"
    codebooks, size, values = decoder.num_codebooks, decoder.codebook_size, payload.values
    if values.ndim != 2 or values.shape[1] != codebooks:
        return f"expected [T, {codebooks}] codes, got {list(values.shape)}"
    if values.size and not 0 <= values.min() <= values.max() < size:
        return f"codes must be in 0..{size - 1}"
    return None


def _problem_with_latents(payload: Payload, latent_size: int) -> str | None:
    if not isinstance(payload, Rows):
        return f"expected Rows, got {type(payload).__name__}"
    values = payload.values
    if values.ndim != 2 or values.shape[1] != latent_size:
        return f"expected [T, {latent_size}] latents, got {list(values.shape)}"
    if not np.isfinite(values).all():
        return "latents must be finite"
    return None
