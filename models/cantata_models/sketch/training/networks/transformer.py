"""The picture network of Qwen-Image, batched, under the published names.

Source: arXiv 2508.02324: text and picture tokens have weights of their
own and attend to each other; the time modulates both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-6
TIME_CHANNELS = 256
ROPE_BASE = 10_000.0


@dataclass(frozen=True)
class TransformerSize:
    """Sizes under their published names."""

    num_layers: int = 5
    num_attention_heads: int = 3
    attention_head_dim: int = 48
    joint_attention_dim: int = 96
    in_channels: int = 64
    axes_dims_rope: tuple[int, int, int] = (8, 20, 20)

    @property
    def width(self) -> int:
        """Channels of a token."""
        return self.num_attention_heads * self.attention_head_dim


class RootNorm(nn.RMSNorm):
    """A root mean square norm that stays fused when the values are bfloat16."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalizes the last dimension."""
        return functional.rms_norm(x, self.normalized_shape, self.weight.type_as(x), self.eps)


class TimeEmbedding(nn.Module):
    """256 sines and cosines of 1000 t, then two layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.timestep_embedder = nn.ModuleDict(
            {"linear_1": nn.Linear(TIME_CHANNELS, width), "linear_2": nn.Linear(width, width)}
        )

    def forward(self, times: Tensor) -> Tensor:
        """Maps `[n]` in 0..1 to `[n, width]`."""
        half = TIME_CHANNELS // 2
        rates = torch.exp(-math.log(10_000) * torch.arange(half, device=times.device) / half)
        angles = 1000 * times[:, None].float() * rates
        waves = torch.cat([angles.cos(), angles.sin()], dim=-1)
        hidden = functional.silu(self.timestep_embedder["linear_1"](waves))
        y: Tensor = self.timestep_embedder["linear_2"](hidden)
        return y


class SketchFeedForward(nn.Module):
    """Widens fourfold, GELU (tanh), narrows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        widening = nn.ModuleDict({"proj": nn.Linear(width, 4 * width)})
        self.net = nn.ModuleList([widening, nn.Identity(), nn.Linear(4 * width, width)])

    def forward(self, x: Tensor) -> Tensor:
        """Maps `[..., width]` to its like."""
        hidden = functional.gelu(self.net[0]["proj"](x), approximate="tanh")  # type: ignore[index]
        y: Tensor = self.net[2](hidden)
        return y


class SketchAttention(nn.Module):
    """Every token, of text or picture, attends to all."""

    def __init__(self, size: TransformerSize) -> None:
        super().__init__()
        width, self.head = size.width, size.attention_head_dim
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width) for _ in range(3))
        self.add_q_proj, self.add_k_proj = (nn.Linear(width, width) for _ in range(2))
        self.add_v_proj = nn.Linear(width, width)
        self.to_out = nn.ModuleList([nn.Linear(width, width)])
        self.to_add_out = nn.Linear(width, width)
        self.norm_q, self.norm_k = (RootNorm(self.head, eps=EPSILON) for _ in range(2))
        self.norm_added_q = RootNorm(self.head, eps=EPSILON)
        self.norm_added_k = RootNorm(self.head, eps=EPSILON)

    def forward(
        self, text: Tensor, picture: Tensor, rotation: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Maps `[n, T, w]` and `[n, P, w]` to their likes.

        Args:
            text: the text's tokens.
            picture: the picture's tokens.
            rotation: `[T + P, head / 2]` complex, the rotation of each position.
            mask: `[n, 1, 1, T + P]` bool, False for padding.
        """
        texts = (self.add_q_proj(text), self.add_k_proj(text), self.add_v_proj(text))
        pictures = (self.to_q(picture), self.to_k(picture), self.to_v(picture))
        (tq, tk, tv), (pq, pk, pv) = map(self._heads, texts), map(self._heads, pictures)
        q = torch.cat([self.norm_added_q(tq), self.norm_q(pq)], dim=1)
        k = torch.cat([self.norm_added_k(tk), self.norm_k(pk)], dim=1)
        v = torch.cat([tv, pv], dim=1)
        q, k, v = (
            x.transpose(1, 2) for x in (apply_rotary(q, rotation), apply_rotary(k, rotation), v)
        )
        # Plain products: on a CPU the fused kernel's backward pass takes three times as long.
        scores = (q @ k.transpose(-1, -2)) * self.head**-0.5
        mixed = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1).type_as(v) @ v
        mixed = mixed.transpose(1, 2).flatten(2)
        length = text.shape[1]
        return self.to_add_out(mixed[:, :length]), self.to_out[0](mixed[:, length:])

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], -1, self.head)


def apply_rotary(x: Tensor, rotation: Tensor) -> Tensor:
    """Rotates adjacent pairs of `[n, L, heads, head]` by `[L, head / 2]` complex."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotation[:, None]).flatten(-2).type_as(x)


class SketchBlock(nn.Module):
    """Attention and feed-forward of both streams, modulated by the time."""

    def __init__(self, size: TransformerSize) -> None:
        super().__init__()
        width = size.width
        self.img_mod = nn.ModuleList([nn.Identity(), nn.Linear(width, 6 * width)])
        self.txt_mod = nn.ModuleList([nn.Identity(), nn.Linear(width, 6 * width)])
        self.attn = SketchAttention(size)
        self.img_mlp = SketchFeedForward(width)
        self.txt_mlp = SketchFeedForward(width)
        for mod in (self.img_mod, self.txt_mod):
            nn.init.zeros_(mod[1].weight)  # type: ignore[arg-type]

    def forward(
        self, text: Tensor, picture: Tensor, time: Tensor, rotation: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Maps `[n, T, w]` and `[n, P, w]` to their likes; `time` is `[n, w]` after SiLU."""
        of_text = self.txt_mod[1](time)[:, None].chunk(6, dim=-1)
        of_picture = self.img_mod[1](time)[:, None].chunk(6, dim=-1)
        text_mixed, picture_mixed = self.attn(
            modulated(text, *of_text[:2]), modulated(picture, *of_picture[:2]), rotation, mask
        )
        text = text + of_text[2] * text_mixed
        picture = picture + of_picture[2] * picture_mixed
        text = text + of_text[5] * self.txt_mlp(modulated(text, *of_text[3:5]))
        picture = picture + of_picture[5] * self.img_mlp(modulated(picture, *of_picture[3:5]))
        return text, picture


def modulated(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """Normalizes `[n, L, w]` and applies a shift and a scale `[n, 1, w]`."""
    return functional.layer_norm(x, x.shape[-1:], eps=EPSILON) * (1 + scale) + shift


class Transformer(nn.Module):
    """Predicts the velocity from the picture to the noise."""

    def __init__(self, size: TransformerSize) -> None:
        super().__init__()
        self.size = size
        width = size.width
        self.time_text_embed = TimeEmbedding(width)
        self.txt_norm = RootNorm(size.joint_attention_dim, eps=EPSILON)
        self.img_in = nn.Linear(size.in_channels, width)
        self.txt_in = nn.Linear(size.joint_attention_dim, width)
        self.transformer_blocks = nn.ModuleList(SketchBlock(size) for _ in range(size.num_layers))
        self.norm_out = nn.ModuleDict({"linear": nn.Linear(width, 2 * width)})
        self.proj_out = nn.Linear(width, size.in_channels)
        for layer in (self.norm_out["linear"], self.proj_out):
            nn.init.zeros_(layer.weight)  # type: ignore[arg-type]

    def forward(self, noisy: Tensor, times: Tensor, text: Tensor, mask: Tensor) -> Tensor:
        """Gives the velocity `[n, P, c]` of a square picture.

        Args:
            noisy: `[n, P, c]`, the packed latents.
            times: `[n]`, 0 for the picture and 1 for noise.
            text: `[n, T, joint_attention_dim]`.
            mask: `[n, T]` bool, False for padding.
        """
        side = math.isqrt(noisy.shape[1])
        rotation = rotations(self.size.axes_dims_rope, side, text.shape[1]).to(noisy.device)
        everything = torch.cat([mask, mask.new_ones(noisy.shape[:2])], dim=1)[:, None, None]
        time = functional.silu(self.time_text_embed(times))
        words = self.txt_in(self.txt_norm(text))
        picture = self.img_in(noisy)
        for block in self.transformer_blocks:
            words, picture = block(words, picture, time, rotation, everything)
        scale, shift = self.norm_out["linear"](time)[:, None].chunk(2, dim=-1)
        velocity: Tensor = self.proj_out(modulated(picture, shift, scale))
        return velocity


def rotations(axes: tuple[int, int, int], side: int, text_length: int) -> Tensor:
    """Gives the rotation of every position, `[text_length + side^2, sum(axes) / 2]` complex.

    Rows and columns count from the middle of the picture; the text goes on beyond its corner, on
    all three axes alike.
    """
    line = torch.arange(side) - (side - side // 2)
    rows, columns = torch.meshgrid(line, line, indexing="ij")
    frames = torch.zeros_like(rows)
    picture = torch.stack([frames, rows, columns], dim=-1).reshape(-1, 3)
    text = (side // 2 + torch.arange(text_length))[:, None].expand(-1, 3)
    positions = torch.cat([text, picture]).float()
    angles = [
        positions[:, axis, None] * ROPE_BASE ** (-torch.arange(0, size, 2) / size)
        for axis, size in enumerate(axes)
    ]
    angle = torch.cat(angles, dim=-1)
    return torch.polar(torch.ones_like(angle), angle)


def packed(latents: Tensor) -> Tensor:
    """Maps `[n, z, h, w]` to tokens `[n, h/2 * w/2, 4 z]` in the published order."""
    n, z, h, w = latents.shape
    return latents.view(n, z, h // 2, 2, w // 2, 2).permute(0, 2, 4, 1, 3, 5).reshape(n, -1, 4 * z)


def unpacked(tokens: Tensor) -> Tensor:
    """Maps tokens `[n, P, 4 z]` of a square picture to `[n, z, h, w]`."""
    n, count, channels = tokens.shape
    side = math.isqrt(count)
    grid = tokens.view(n, side, side, channels // 4, 2, 2).permute(0, 3, 1, 4, 2, 5)
    return grid.reshape(n, channels // 4, 2 * side, 2 * side)
