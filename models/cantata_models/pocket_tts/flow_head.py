"""Makes a latent of noise and the language model's hidden state, in one step or a few.

A perceptron whose norms are scaled and shifted by a condition (Li et al. 2024,
arXiv:2406.11838) predicts the velocity from noise to latent. The steps are those of Lagrangian
self-distillation (Boffi et al. 2025, arXiv:2505.18825). Source of the details: the package
`pocket_tts`, modules/mlp.py.

Letters: R rows, E numbers of a latent, C channels, H hidden size, S steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.row_products import RowLinear
from cantata_layers.exact_layers import silu
from cantata_models.pocket_tts.config import FlowKind, PocketConfig

FREQUENCIES = 128
NORM_EPS, TIME_EPS = 1e-6, 1e-5
MAX_UNIFORM = 1.0 - 2.0**-24
"""Before 1, of which the inverse error function is infinite."""


class Silu(nn.Module):
    """Holds a place in the published order of modules."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[...] -> [...]."""
        return silu(x)


class VarianceNorm(nn.Module):
    """Divides by the standard deviation, and keeps the mean."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.empty(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[..., C] -> [..., C]."""
        spread = torch.rsqrt(TIME_EPS + x.var(dim=-1, keepdim=True))
        return torch.as_tensor(x * (self.alpha * spread))


class PocketTimeEmbedding(nn.Module):
    """A time as channels."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.freqs = nn.Parameter(torch.empty(FREQUENCIES), requires_grad=False)
        """Published with the weights."""
        self.mlp = nn.Sequential(
            RowLinear(2 * FREQUENCIES, size), Silu(), RowLinear(size, size), VarianceNorm(size)
        )

    def forward(self, times: torch.Tensor) -> torch.Tensor:
        """[S, 1] -> [S, C]."""
        angles = times * self.freqs
        return torch.as_tensor(self.mlp(torch.cat([angles.cos(), angles.sin()], dim=-1)))


class FlowBlock(nn.Module):
    """A perceptron with a residual connection."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.in_ln = nn.LayerNorm(size, eps=NORM_EPS)
        self.mlp = nn.Sequential(RowLinear(size, size), Silu(), RowLinear(size, size))
        self.adaLN_modulation = nn.Sequential(Silu(), RowLinear(size, 3 * size))

    def forward(self, x: torch.Tensor, cond: torch.Tensor) -> torch.Tensor:
        """[R, C] each -> [R, C]."""
        shift, scale, gate = self.adaLN_modulation(cond).chunk(3, dim=-1)
        return torch.as_tensor(x + gate * self.mlp(self.in_ln(x) * (1 + scale) + shift))


class FlowFinalLayer(nn.Module):
    """The last layer: from channels to a latent."""

    def __init__(self, size: int, latent: int) -> None:
        super().__init__()
        self.linear = RowLinear(size, latent)
        self.adaLN_modulation = nn.Sequential(Silu(), RowLinear(size, 2 * size))

    def forward(self, x: torch.Tensor, cond: torch.Tensor) -> torch.Tensor:
        """[R, C] each -> [R, E]."""
        shift, scale = self.adaLN_modulation(cond).chunk(2, dim=-1)
        normed = functional.layer_norm(x, x.shape[-1:], eps=NORM_EPS)
        return torch.as_tensor(self.linear(normed * (1 + scale) + shift))


class FlowHead(nn.Module):
    """The head, with its modules named as in the checkpoint."""

    def __init__(self, config: PocketConfig) -> None:
        super().__init__()
        self._kind, size = config.flow, config.flow_size
        times = 2 if config.flow is FlowKind.LSD else 0
        self.time_embed = nn.ModuleList(PocketTimeEmbedding(size) for _ in range(times))
        self.cond_embed = RowLinear(config.backbone.output, size)
        self.input_proj = RowLinear(config.mimi.latent, size)
        self.res_blocks = nn.ModuleList(FlowBlock(size) for _ in range(config.flow_depth))
        self.final_layer = FlowFinalLayer(size, config.mimi.latent)
        self._times: dict[int, torch.Tensor] = {}
        """[S, C] embedded times by number of steps, made at the first use."""

    def forward(
        self, noise: torch.Tensor, hidden: torch.Tensor, steps: Sequence[int]
    ) -> torch.Tensor:
        """Make latents that may differ in their number of steps.

        Args:
            noise: [R, E], where each begins.
            hidden: [R, H].
            steps: [R]; 0 for rows that only pad. Of no effect for heads that take one step.

        Returns:
            [R, E].
        """
        cond = self.cond_embed(hidden)
        if self._kind is FlowKind.DRIFTING:
            return self._velocity(noise, cond)
        if self._kind is FlowKind.POINTWISE:
            return noise + self._velocity(noise, cond)
        latents = noise
        for step in range(max(steps)):
            rows = [row for row, count in enumerate(steps) if step < count]
            times = torch.stack([self._embed_times(steps[row])[step] for row in rows])
            lengths = torch.tensor([[steps[row]] for row in rows])
            lengths = lengths.to(noise.device, non_blocking=True)
            if len(rows) == len(steps):
                latents = latents + self._velocity(latents, cond + times) / lengths
                continue
            moving = torch.tensor(rows).to(noise.device, non_blocking=True)
            velocity = self._velocity(latents[moving], cond[moving] + times)
            latents = latents.index_add(0, moving, velocity / lengths)
        return latents

    def _velocity(self, x: torch.Tensor, cond: torch.Tensor) -> torch.Tensor:
        x = self.input_proj(x)
        for block in self.res_blocks:
            x = block(x, cond)
        return torch.as_tensor(self.final_layer(x, cond))

    def _embed_times(self, steps: int) -> torch.Tensor:
        if steps not in self._times:
            weight = self.input_proj.weight
            ends = torch.arange(steps + 1, dtype=weight.dtype, device=weight.device)[:, None]
            from_time, to_time = self.time_embed
            ends = ends / steps
            self._times[steps] = (from_time(ends[:-1]) + to_time(ends[1:])) / 2
        return self._times[steps]


def truncate_normal(
    noise: torch.Tensor, temperature: torch.Tensor, bound: torch.Tensor
) -> torch.Tensor:
    """Scale normal noise, and squeeze it between bounds where there are some.

    The result is that of a normal distribution without what lies beyond the bounds: each number
    keeps its rank.

    Args:
        noise: [R, E], of variance 1.
        temperature: [R, 1], the variance wanted.
        bound: [R, 1]; 0: none.

    Returns:
        [R, E].
    """
    deviation = temperature.sqrt()
    limit = bound / deviation.clamp(min=1e-12) * math.sqrt(0.5)
    inside = torch.erf(noise * math.sqrt(0.5)) * torch.erf(limit)
    squeezed = torch.erfinv(inside.clamp(-MAX_UNIFORM, MAX_UNIFORM)) * (deviation * math.sqrt(2.0))
    kept = torch.minimum(torch.maximum(squeezed, -bound), bound)
    return torch.where(bound > 0, kept, noise * deviation)
