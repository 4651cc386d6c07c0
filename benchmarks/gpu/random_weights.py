"""Networks with random weights: speed depends on shapes alone."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import nn

from cantata.contract.model.sampling import CodeSampling
from cantata.contract.model.talker import FrameDraws

M = TypeVar("M", bound=nn.Module)


def randomized(module: M, device: torch.device) -> M:
    """Fill a module; on CUDA in bfloat16, as it is served there."""
    dtype = serving_dtype(device)
    filled = module.to(device, dtype).requires_grad_(False)
    for parameter in filled.parameters():
        parameter.normal_(std=parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 1.0)
    return filled


def serving_dtype(device: torch.device) -> torch.dtype:
    """The dtype in which a talker is served on this device."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def same_draws(
    uniforms: torch.Tensor, sampled: bool, temperature: float, top_k: int, top_p: float
) -> FrameDraws:
    """[R, Q] uniform numbers -> what all R requests draw with."""
    requests = len(uniforms)
    sampling = CodeSampling(
        temperature=uniforms.new_full((requests,), temperature),
        top_k=torch.full((requests,), top_k, device=uniforms.device),
        top_p=uniforms.new_full((requests,), top_p),
    )
    return FrameDraws(uniforms, sampling, sampled)
