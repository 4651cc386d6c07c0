"""Makes a patch of latents from noise: flow matching, solved by Euler's method with guidance.

A small diffusion transformer, a Llama over a few positions that all see each other, sees two hidden
states of the language models, the time, the patch before and the noisy patch, and predicts the
velocity. Lipman et al. 2023 (arXiv:2210.02747); guidance is CFG-Zero* (Fan et al. 2025,
arXiv:2503.18886). Source of the details: the package `voxcpm`, modules/locdit. The local encoder,
of the same layers, makes one row of a patch. Every operation gives a row the same bits among any
number of rows. Modules are named as in the checkpoint; projections of one input are fused.

Letters: R patches, P latents of a patch, C numbers of a latent, H hidden size, D head size, S
steps, T tokens or positions, F patches of a request.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from cantata.contract.model.row_products import RowLinear
from cantata_layers.code_predictor import CosSin, FusedLinear, PredictorRmsNorm
from cantata_layers.exact_layers import silu
from cantata_models.voxcpm2.config import MiniCpmSizes, VoxCpm2Config
from cantata_models.voxcpm2.long_rope import build_cos_sin

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


class PatchTransformer(nn.Module):
    """The layers and the norm behind them.

    Args:
        stack: its shape; it has positions.
        positions: T.
    """

    def __init__(self, stack: MiniCpmSizes, positions: int) -> None:
        super().__init__()
        assert stack.rope is not None
        self.layers = nn.ModuleList(LocalLayer(stack) for _ in range(stack.layers))
        self.norm = PredictorRmsNorm(stack.hidden_size, stack.rms_norm_eps)
        self.cos: torch.Tensor
        self.sin: torch.Tensor
        cos, sin = build_cos_sin(stack.rope, positions)
        self.register_buffer("cos", torch.cat([cos, cos], dim=1)[:, None], persistent=False)
        self.register_buffer("sin", torch.cat([-sin, sin], dim=1)[:, None], persistent=False)

    def forward(self, x: torch.Tensor, wanted: slice) -> torch.Tensor:
        """[R, T, H] -> [R, W, H], of the wanted positions alone."""
        cos_sin = self.cos, self.sin
        *others, last = self.layers
        for layer in others:
            x = layer(x, cos_sin, slice(None))
        return torch.as_tensor(self.norm(last(x, cos_sin, wanted)))


class LocalLayer(nn.Module):
    """Attention and perceptron, each with a norm before it and a residual connection."""

    def __init__(self, stack: MiniCpmSizes) -> None:
        super().__init__()
        size, eps = stack.hidden_size, stack.rms_norm_eps
        self.input_layernorm = PredictorRmsNorm(size, eps)
        self.self_attn = LocalAttention(stack)
        self.post_attention_layernorm = PredictorRmsNorm(size, eps)
        self.mlp = LocalPerceptron(size, stack.intermediate_size)

    def forward(self, x: torch.Tensor, cos_sin: CosSin, wanted: slice) -> torch.Tensor:
        """[R, T, H] and angles [T, 1, D] -> [R, W, H]."""
        x = x[:, wanted] + self.self_attn(self.input_layernorm(x), cos_sin, wanted)
        return x + torch.as_tensor(self.mlp(self.post_attention_layernorm(x)))


class LocalAttention(nn.Module):
    """Each position attends to all."""

    def __init__(self, stack: MiniCpmSizes) -> None:
        super().__init__()
        self._head_dim, self._heads, self._kv_heads = stack.head_dim, stack.heads, stack.kv_heads
        queries, keys = stack.heads * stack.head_dim, stack.kv_heads * stack.head_dim
        self.qkv_proj = FusedLinear(stack.hidden_size, {"q": queries, "k": keys, "v": keys})
        self.o_proj = RowLinear(queries, stack.hidden_size, bias=False)

    def forward(self, x: torch.Tensor, cos_sin: CosSin, wanted: slice) -> torch.Tensor:
        """[R, T, H] and angles [T, 1, D] -> [R, W, H]."""
        heads = self.qkv_proj(x).unflatten(-1, (-1, self._head_dim))
        moved, value = heads.tensor_split((self._heads + self._kv_heads,), dim=2)
        query, key = apply_whole_rotary(moved, cos_sin).tensor_split((self._heads,), dim=2)
        query, key, value = (part.transpose(1, 2) for part in (query[:, wanted], key, value))
        mixed = functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)
        return torch.as_tensor(self.o_proj(mixed.transpose(1, 2).flatten(2)))


class LocalPerceptron(nn.Module):
    """Two products with a gate between them."""

    def __init__(self, size: int, inner: int) -> None:
        super().__init__()
        self.gate_up_proj = FusedLinear(size, {0: inner, 1: inner})
        self.down_proj = RowLinear(inner, size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[R, T, H] -> [R, T, H]."""
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return torch.as_tensor(self.down_proj(silu(gate) * up))


def apply_whole_rotary(x: torch.Tensor, cos_sin: CosSin) -> torch.Tensor:
    """As `apply_rotary`, with angles [..., D]: all cosines and sines twice, first sines negated."""
    cos, sin = cos_sin
    low, high = x.chunk(2, dim=-1)
    return (x * cos).add_(torch.cat([high, low], dim=-1) * sin).to(x.dtype)


class PatchEncoder(nn.Module):
    """A learned token in front of the patch gathers what the row holds."""

    def __init__(self, config: VoxCpm2Config) -> None:
        super().__init__()
        size = config.encoder.hidden_size
        self.special_token = nn.Parameter(torch.empty(1, 1, 1, size))
        self.in_proj = RowLinear(config.latent_dim, size)
        self.encoder = PatchTransformer(config.encoder, positions=1 + config.patch_size)

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        """[R, P, C] -> [R, H]."""
        latents = self.in_proj(patches)
        token = self.special_token[0].expand(len(patches), -1, -1)
        return torch.as_tensor(self.encoder(torch.cat([token, latents], dim=1), slice(1))[:, 0])


HIDDEN_TOKENS = 2
"""One of each language model."""
TIME = HIDDEN_TOKENS
"""Where the time stands among the tokens; behind it the patch before, then the noisy one."""
TIME_SCALE = 1000.0
MAX_PERIOD = 10_000.0
STILL_SHARE = 0.04
"""Of the times: in so many steps, at least one, the velocity is taken as zero (CFG-Zero*)."""
TINY = 1e-8
"""Keeps the projection on a zero velocity finite."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What patches are made from."""

    hidden: torch.Tensor
    """[R, 2, H]: what the language models say, as tokens."""
    previous: torch.Tensor
    """[R, P, C]: the patch before."""
    guidance: torch.Tensor
    """[R]: how far to go from the velocity without `hidden` to that with it, and beyond."""


class VoxCpm2TimeEmbedding(nn.Module):
    """Two products with SiLU between them."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear_1 = RowLinear(size, size)
        self.linear_2 = RowLinear(size, size)

    def forward(self, waves: torch.Tensor) -> torch.Tensor:
        """[S, H] -> [S, H]."""
        return torch.as_tensor(self.linear_2(silu(self.linear_1(waves))))


class VelocityNetwork(nn.Module):
    """The diffusion transformer."""

    def __init__(self, config: VoxCpm2Config) -> None:
        super().__init__()
        size, patch = config.dit.hidden_size, config.patch_size
        self._size, self._patch = size, patch
        self.in_proj = RowLinear(config.latent_dim, size)
        self.cond_proj = RowLinear(config.latent_dim, size)
        self.out_proj = RowLinear(size, config.latent_dim)
        self.time_mlp = VoxCpm2TimeEmbedding(size)
        self.delta_time_mlp = VoxCpm2TimeEmbedding(size)
        self.decoder = PatchTransformer(config.dit, positions=TIME + 1 + 2 * patch)

    def embed_times(self, times: torch.Tensor) -> torch.Tensor:
        """[S] -> [S, H] tokens. The network also knows the length of a step, which is always 0."""
        lengths = self.delta_time_mlp(self._waves(torch.zeros_like(times[:1])))
        return torch.as_tensor(self.time_mlp(self._waves(times)) + lengths)

    def tokens(self, conditions: Conditions) -> torch.Tensor:
        """Return [2, R, T, H]: the conditioned patches and the free ones, which lack `hidden`; the
        time and the noisy patch are to be filled in."""
        patches = len(conditions.hidden)
        tokens = conditions.hidden.new_zeros(2, patches, TIME + 1 + 2 * self._patch, self._size)
        tokens[0, :, :TIME] = conditions.hidden
        tokens[:, :, TIME + 1 : -self._patch] = self.cond_proj(conditions.previous)
        return tokens

    def forward(
        self, tokens: torch.Tensor, time: torch.Tensor, noisy: torch.Tensor
    ) -> torch.Tensor:
        """Predict velocities.

        Args:
            tokens: [2, R, T, H], as `tokens` returns them; changed in place.
            time: [R, H] or [1, H].
            noisy: [R, P, C].

        Returns:
            [2, R, P, C].
        """
        tokens[:, :, TIME] = time
        tokens[:, :, -self._patch :] = self.in_proj(noisy)
        seen = self.decoder(tokens.flatten(0, 1), slice(-self._patch, None))
        return torch.as_tensor(self.out_proj(seen)).view(2, -1, *noisy.shape[1:])

    def _waves(self, times: torch.Tensor) -> torch.Tensor:
        half = self._size // 2
        falling = torch.arange(half, dtype=times.dtype, device=times.device)
        periods = torch.exp(falling * -(math.log(MAX_PERIOD) / (half - 1)))
        angles = TIME_SCALE * times[:, None] * periods
        return torch.cat([angles.sin(), angles.cos()], dim=-1)


@dataclass(frozen=True, slots=True)
class SolverPlan:
    """The steps that move a patch, of a number of steps."""

    times: torch.Tensor
    """[S, H]: each one's token."""
    lengths: torch.Tensor
    """[S]"""


class PatchSolver(nn.Module):
    """The solver, with its network named as in the checkpoint."""

    def __init__(self, config: VoxCpm2Config) -> None:
        super().__init__()
        self.estimator = VelocityNetwork(config)
        self._plans: dict[int, SolverPlan] = {}
        """By number of steps, made at the first use: after that nothing comes from the host."""

    def forward(
        self, noise: torch.Tensor, conditions: Conditions, steps: Sequence[int]
    ) -> torch.Tensor:
        """Make patches that may differ in their number of steps.

        Args:
            noise: [R, P, C], where each begins.
            steps: [R]; 0 for rows that only pad, which stay as they are.

        Returns:
            [R, P, C] in the dtype of `noise`.
        """
        if len({*steps}) == 1 and steps[0]:
            plan = self._plan(steps[0])
            moving = [len(noise)] * len(plan.lengths)
            return self._solve(
                noise, conditions, plan.times[:, None], plan.lengths[:, None], moving
            )
        # The patches that move longest come first: those that still move are the first ones.
        order = sorted(filter(steps.__getitem__, range(len(steps))), key=lambda row: -steps[row])
        output = noise.clone()
        if order:
            plans = [self._plan(steps[row]) for row in order]
            rows = torch.tensor(order).to(noise.device, non_blocking=True)
            own = Conditions(
                conditions.hidden[rows], conditions.previous[rows], conditions.guidance[rows]
            )
            times = pad_sequence([plan.times for plan in plans])
            lengths = pad_sequence([plan.lengths for plan in plans])
            moving = [sum(step < len(plan.lengths) for plan in plans) for step in range(len(times))]
            output[rows] = self._solve(noise[rows], own, times, lengths, moving)
        return output

    def _solve(
        self,
        noise: torch.Tensor,
        conditions: Conditions,
        times: torch.Tensor,
        lengths: torch.Tensor,
        moving: Sequence[int],
    ) -> torch.Tensor:
        """[S, R or 1, H] and [S, R or 1]; in each step so many of the patches move, the first."""
        x, tokens = noise.clone(), self.estimator.tokens(conditions)
        guidance = conditions.guidance[:, None, None].to(x.dtype)
        for time, length, count in zip(times, lengths, moving, strict=True):
            conditioned, free = self.estimator(tokens[:, :count], time[:count], x[:count])
            velocity = guided(conditioned, free, guidance[:count])
            x[:count] -= length[:count, None, None] * velocity
        return x

    def _plan(self, steps: int) -> SolverPlan:
        if steps not in self._plans:
            weight = self.estimator.in_proj.weight
            times, lengths = schedule(steps, weight.dtype)
            still = max(1, int((steps + 1) * STILL_SHARE))
            embedded = self.estimator.embed_times(times.to(weight.device))
            self._plans[steps] = SolverPlan(embedded[still:], lengths[still:].to(weight.device))
        return self._plans[steps]


def schedule(steps: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each step's time and length, [S] each: from 1 to 0, slowly at first.

    The times are sums of the lengths, rounded as in the published program, which also computes them
    in the network's dtype.
    """
    span = torch.linspace(1, 0, steps + 1, dtype=dtype)
    span = span + (torch.cos(torch.pi / 2 * span) - 1 + span)
    time, times, lengths = span[0], [], []
    for after in span[1:]:
        length = time - after
        times.append(time)
        lengths.append(length)
        time = time - length
    return torch.stack(times), torch.stack(lengths)


def guided(conditioned: torch.Tensor, free: torch.Tensor, guidance: torch.Tensor) -> torch.Tensor:
    """Go from the free velocity, scaled to fit, to the conditioned one and beyond.

    Args:
        conditioned: [R, P, C], as `free`.
        guidance: [R, 1, 1].
    """
    along = (conditioned * free).flatten(1).sum(dim=1)
    fit = along / (free.square().flatten(1).sum(dim=1) + TINY)
    scaled = free * fit[:, None, None]
    return scaled + guidance * (conditioned - scaled)
