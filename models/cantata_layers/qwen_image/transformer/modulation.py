"""What a step's share of noise changes: shifts, scales and gates of every block; and
normalizations, computed in float32.

They depend on the share alone and are a third of the published model's weights. So they are
computed once for each share, and the weights may stay off the device: `home`.

Letters: D width, B blocks, U shares of noise, L tokens, E columns."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.row_products import RowLinear
from cantata_layers.qwen_image.config import TIMESTEPS

EPSILON = 1e-6


class RmsNorm(nn.Module):
    """[..., E] -> [..., E] of the same dtype, with a learnt gain."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scaled = wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + EPSILON)
        return scaled.to(x.dtype) * self.weight


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    """[L, E] -> [L, E], without gain or bias; the modulation has both."""
    return functional.layer_norm(x, x.shape[-1:], eps=EPSILON)


FREQUENCIES = 128
PERIOD = 10_000
KEPT = 128
"""Shares of noise; one of the published size takes 4.4 MB in bf16."""


@dataclass(frozen=True, slots=True)
class Modulation:
    """The modulation for one share of noise."""

    image: torch.Tensor
    """[B, 6, D]: shift, scale and gate of attention, then of the MLP."""
    text: torch.Tensor
    """The same for texts."""
    last: torch.Tensor
    """[2, D]: scale and shift in front of the last layer."""


class TimestepEmbedder(nn.Module):
    """Layers [U, 2 * FREQUENCIES] -> [U, D] -> [U, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear_1 = RowLinear(2 * FREQUENCIES, width)
        self.linear_2 = RowLinear(width, width)


class ModulationWeights(nn.Module):
    """The layers that make modulations.

    Args:
        width: D.
        blocks: B.
    """

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        self.embedder = TimestepEmbedder(width)
        self.image = nn.ModuleList(RowLinear(width, 6 * width) for _ in range(blocks))
        self.text = nn.ModuleList(RowLinear(width, 6 * width) for _ in range(blocks))
        self.last = RowLinear(width, 2 * width)


class Modulations:
    """The modulations of a checkpoint, computed when they are first asked for.

    Args:
        weights: may be on another device than the modulations.
        kept: shares of noise whose modulations are kept, those asked for last.
    """

    def __init__(self, weights: ModulationWeights, device: torch.device, kept: int = KEPT) -> None:
        self.weights, self._device, self._max_kept = weights, device, kept
        self._kept: OrderedDict[float, Modulation] = OrderedDict()

    def __len__(self) -> int:
        """Shares of noise whose modulations are kept."""
        return len(self._kept)

    def of(self, shares: Sequence[float]) -> list[Modulation]:
        """The modulations of shares of noise, 0 to 1."""
        missing = [share for share in dict.fromkeys(shares) if share not in self._kept]
        found = {share: self._kept[share] for share in shares if share in self._kept}
        if missing:
            found.update(zip(missing, self._compute(missing), strict=True))
        for share, modulation in found.items():
            self._kept[share] = modulation
            self._kept.move_to_end(share)
        while len(self._kept) > self._max_kept:
            self._kept.popitem(last=False)
        return [found[share] for share in shares]

    def _compute(self, shares: Sequence[float]) -> list[Modulation]:
        conditions = _apply_silu_by_row(self._embedded(shares))
        image = torch.stack([self._multiply(layer, conditions) for layer in self.weights.image])
        text = torch.stack([self._multiply(layer, conditions) for layer in self.weights.text])
        last = self._multiply(self.weights.last, conditions)
        blocks, count = image.shape[:2]
        return [
            Modulation(
                image=image[:, index].reshape(blocks, 6, -1).clone(),
                text=text[:, index].reshape(blocks, 6, -1).clone(),
                last=last[index].reshape(2, -1).clone(),
            )
            for index in range(count)
        ]

    def _embedded(self, shares: Sequence[float]) -> torch.Tensor:
        """[U, D]."""
        dtype = self.weights.last.weight.dtype
        # As the reference rounds: the timestep first, then its thousandth.
        timesteps = (torch.tensor(shares, dtype=torch.float32) * TIMESTEPS).to(dtype) / TIMESTEPS
        exponents = -math.log(PERIOD) * torch.arange(FREQUENCIES, dtype=torch.float32)
        angles = timesteps[:, None].float() * torch.exp(exponents / FREQUENCIES)[None]
        angles = TIMESTEPS * angles
        waves = torch.cat([angles.cos(), angles.sin()], dim=-1)
        waves = waves.to(self._device, dtype, non_blocking=True)
        embedder = self.weights.embedder
        inner = _apply_silu_by_row(self._multiply(embedder.linear_1, waves))
        return self._multiply(embedder.linear_2, inner)

    def _multiply(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        assert isinstance(layer, RowLinear)
        if layer.weight.device == x.device:
            return torch.as_tensor(layer(x))
        weight = layer.weight.to(x.device, non_blocking=True)
        return functional.linear(x, weight, layer.bias.to(x.device, non_blocking=True))


def _apply_silu_by_row(x: torch.Tensor) -> torch.Tensor:
    """[U, D] -> [U, D]; by row, because a kernel may treat the last elements in another way."""
    return torch.cat([functional.silu(row) for row in torch.split(x, 1)])
