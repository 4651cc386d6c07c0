"""The talker: a Qwen3-shaped decoder over frames, in plain torch.

Position p has the input row `track[p] + frame_embedding(frame p - 1)` (the BOS row for p = 0), and
its hidden state gives frame p. So one row is prefilled and T frames take T steps. The parameter
names are those of Qwen3 checkpoints, so a serving engine can load the backbone into its own layers.

Letters: B rows, T frames, D hidden size, H query heads, K key-value heads, E head size,
Q codebooks.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from cantata_models.solo.config import SoloConfig, TalkerConfig
from cantata_models.solo.networks.layers import TrainableRowLinear
from cantata_models.solo.networks.talker_parts import FrameEmbedding, LatentHead
from cantata_models.solo.networks.text_track import TextTrackEncoder


class RMSNorm(nn.Module):
    """x / rms(x) * weight over the last dimension."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scaled = wide * torch.rsqrt((wide * wide).mean(dim=-1, keepdim=True) + self.eps)
        return (scaled * self.weight).to(x.dtype)


def rotary(positions: torch.Tensor, size: int, theta: float) -> tuple[torch.Tensor, torch.Tensor]:
    """[T] int64 positions -> cosines and sines [T, size / 2] float32."""
    exponents = torch.arange(0, size, 2, device=positions.device) / size
    angles = positions[:, None].float() / theta**exponents
    return angles.cos(), angles.sin()


def rotate(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Rotates the halves of [B, heads, T, E] by position (NeoX layout)."""
    first, second = x.chunk(2, dim=-1)
    rotated = torch.cat(
        [first * cosines - second * sines, second * cosines + first * sines], dim=-1
    )
    return rotated.to(x.dtype)


@dataclass(slots=True)
class LayerCache:
    """Past keys and values of one layer, [B, K, T, E]; None before the first step."""

    keys: torch.Tensor | None = None
    values: torch.Tensor | None = None

    def extend(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Appends keys and values and returns all of them."""
        if self.keys is not None and self.values is not None:
            keys = torch.cat([self.keys, keys], dim=2)
            values = torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values
        return keys, values


class TalkerAttention(nn.Module):
    """Grouped-query attention with normalized queries and keys."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        self.config = config
        size, heads, kv_heads = config.head_dim, config.heads, config.kv_heads
        self.q_proj = TrainableRowLinear(config.hidden_size, heads * size, bias=False)
        self.k_proj = TrainableRowLinear(config.hidden_size, kv_heads * size, bias=False)
        self.v_proj = TrainableRowLinear(config.hidden_size, kv_heads * size, bias=False)
        self.o_proj = TrainableRowLinear(heads * size, config.hidden_size, bias=False)
        self.q_norm = RMSNorm(size, config.rms_norm_eps)
        self.k_norm = RMSNorm(size, config.rms_norm_eps)

    def forward(
        self,
        x: torch.Tensor,
        cos_sin: tuple[torch.Tensor, torch.Tensor],
        cache: LayerCache | None,
    ) -> torch.Tensor:
        batch, length, _ = x.shape
        c = self.config

        def split(rows: torch.Tensor, heads: int) -> torch.Tensor:
            return rows.view(batch, length, heads, c.head_dim)

        queries = self.q_norm(split(self.q_proj(x), c.heads)).transpose(1, 2)
        keys = self.k_norm(split(self.k_proj(x), c.kv_heads)).transpose(1, 2)
        values = split(self.v_proj(x), c.kv_heads).transpose(1, 2)
        queries, keys = rotate(queries, *cos_sin), rotate(keys, *cos_sin)
        if cache is not None:
            keys, values = cache.extend(keys, values)
        attended = functional.scaled_dot_product_attention(
            queries, keys, values, is_causal=length > 1, enable_gqa=True
        )
        merged = attended.transpose(1, 2).reshape(batch, length, c.heads * c.head_dim)
        return torch.as_tensor(self.o_proj(merged))


class TalkerFeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = TrainableRowLinear(hidden, inner, bias=False)
        self.up_proj = TrainableRowLinear(hidden, inner, bias=False)
        self.down_proj = TrainableRowLinear(inner, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x)))


class DecoderLayer(nn.Module):
    """Attention and feed-forward, each with a norm before it and a residual connection."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = TalkerAttention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = TalkerFeedForward(config)

    def forward(
        self,
        x: torch.Tensor,
        cos_sin: tuple[torch.Tensor, torch.Tensor],
        cache: LayerCache | None,
    ) -> torch.Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos_sin, cache)
        return torch.as_tensor(x + self.mlp(self.post_attention_layernorm(x)))


class SoloTalkerNetwork(nn.Module):
    """Track rows and previous frames -> hidden states -> latents -> codes."""

    def __init__(self, config: SoloConfig) -> None:
        super().__init__()
        self.config = config.talker
        codec, hidden = config.codec, config.talker.hidden_size
        sizes = (codec.codebooks, codec.codebook_size, codec.latent_size, hidden)
        self.layers = nn.ModuleList(
            DecoderLayer(config.talker) for _ in range(config.talker.layers)
        )
        self.norm = RMSNorm(hidden, config.talker.rms_norm_eps)
        self.frame_embedding = FrameEmbedding(*sizes)
        self.latent_head = LatentHead(*sizes, config.talker.temperature)
        self.text_track = TextTrackEncoder(config.text, len(config.voices), hidden)

    def set_codebooks(self, codebooks: torch.Tensor) -> None:
        """Copies the codec's [Q, V, Z] codebooks into the parts that use them."""
        self.frame_embedding.codebooks.copy_(codebooks)
        self.latent_head.codebooks.copy_(codebooks)

    def backbone(
        self, rows: torch.Tensor, start: int = 0, caches: list[LayerCache] | None = None
    ) -> torch.Tensor:
        """Input rows [B, T, D] at positions start.. -> hidden states [B, T, D]."""
        positions = torch.arange(start, start + rows.shape[1], device=rows.device)
        cos_sin = rotary(positions, self.config.head_dim, self.config.rope_theta)
        x = rows
        for index, layer in enumerate(self.layers):
            x = layer(x, cos_sin, None if caches is None else caches[index])
        return torch.as_tensor(self.norm(x))

    def input_rows(self, track: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """Teacher-forced input of one utterance: [T, D] track, [T, Q] codes -> [T, D] rows."""
        previous = self.frame_embedding(codes[:-1])
        return track + torch.cat([self.frame_embedding.bos()[None], previous])

    @torch.inference_mode()
    def generate(self, track: torch.Tensor) -> torch.Tensor:
        """Generates a track's frames greedily, one per step.

        Args:
            track: [T, D] float32, T >= 1.

        Returns:
            [T, Q] int64 codes.
        """
        caches = [LayerCache() for _ in self.layers]
        previous = self.frame_embedding.bos()[None]
        frames: list[torch.Tensor] = []
        for position, row in enumerate(track):
            hidden = self.backbone((row + previous)[None], position, caches)[0]
            frame = self.latent_head.quantize(self.latent_head(hidden))
            frames.append(frame[0])
            previous = self.frame_embedding(frame)
        return torch.stack(frames)
