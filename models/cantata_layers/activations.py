"""Activations whose float32 results do not depend on the rows beside a row."""

from __future__ import annotations

import math

import torch


def silu(x: torch.Tensor) -> torch.Tensor:
    """x times its logistic function.

    WHY by hand: torch's own differs by a bit between vectors and their remainders, which depend on
    the number of rows.
    """
    return x / (1.0 + torch.exp(-x))


def elu(x: torch.Tensor) -> torch.Tensor:
    """x, and below 0 its exponential less 1."""
    return x.clamp(min=0) + (x.clamp(max=0).exp() - 1.0)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """x times the normal distribution, in the approximation with a hyperbolic tangent."""
    inner = (x + 0.044715 * x * x * x) * (2.0 * math.sqrt(2.0 / math.pi))
    return x / (1.0 + torch.exp(-inner))
