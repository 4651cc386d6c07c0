"""Layers whose float32 result for a row on a CPU does not depend on the rows beside it.

Letters: B rows, T positions, H heads, D head size, I inputs, O outputs.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch.nn import functional

from cantata.contract.model.row_products import RowProduct
from cantata_layers.numerics import TYPICAL_ROWS
from cantata_layers.weights import Weights


def silu(x: torch.Tensor) -> torch.Tensor:
    """x times its logistic function.

    WHY by hand: torch's own differs by a bit between vectors and their remainders, which depend on
    the number of rows.
    """
    return x / (1.0 + torch.exp(-x))


def elu(x: torch.Tensor) -> torch.Tensor:
    """x, and below 0 its exponential less 1."""
    return x.clamp(max=0).exp_().sub_(1.0).add_(x.clamp(min=0))


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """x times the normal distribution, in the approximation with a hyperbolic tangent."""
    inner = (0.044715 * x).mul_(x).mul_(x).add_(x).mul_(-2.0 * math.sqrt(2.0 / math.pi))
    return x / inner.exp_().add_(1.0)


class Rotation:
    """Rotary positions (Su et al., 2021) of one call over the two halves of a head.

    Args:
        positions: [B], of each row's first frame.
        frames: of this call, T.
        inverse_frequencies: [D / 2].
    """

    def __init__(self, positions: torch.Tensor, frames: int, inverse_frequencies: torch.Tensor):
        offsets = torch.arange(frames, device=positions.device)
        angles = (positions[:, None] + offsets)[..., None, None].float() * inverse_frequencies
        self._cos, self._sin = angles.cos(), angles.sin()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[B, T, H, D] -> [B, T, H, D], rotated."""
        low, high = x.chunk(2, dim=-1)
        turned = (low * self._cos - high * self._sin, high * self._cos + low * self._sin)
        return torch.cat(turned, dim=-1)


class Linear:
    """A linear layer for a codec, whose calls have many rows: [..., I] -> [..., O].

    Args:
        weight: [O, I].
        bias: [O].
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self.inputs, self.outputs = weight.shape[1], weight.shape[0]
        self._bias = bias
        on_cpu = weight.device.type == "cpu"
        self._multiply: RowProduct | partial[torch.Tensor] = (
            RowProduct(weight, TYPICAL_ROWS)
            if on_cpu
            else partial(functional.linear, weight=weight)
        )

    @classmethod
    def load(
        cls, weights: Weights, name: str, inputs: int, outputs: int, bias: bool = False
    ) -> Linear:
        weight = weights.take(f"{name}.weight", outputs, inputs)
        return cls(weight, weights.take(f"{name}.bias", outputs) if bias else None)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        output = self._multiply(x.reshape(-1, self.inputs), bias=self._bias)
        return output.view(*x.shape[:-1], self.outputs)
