"""One of the two sets of weights: what a layer computes for each token by itself.

Letters: L tokens, D width, H heads, K key heads, C columns of a head.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.row_products import RowLinear
from cantata_layers.qwen_image.transformer.norms import RmsNorm
from cantata_layers.qwen_image.transformer.packing import by_row
from cantata_models.bagel.config import LanguageConfig
from cantata_models.bagel.network.rotation import Rotation

Heads = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Queries [L, H, C], keys and values [L, K, C]."""


class Attention(nn.Module):
    """Projections around attention, under their published names."""

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        keys = config.key_heads * config.head
        self.q_proj = RowLinear(config.width, config.width)
        self.k_proj = RowLinear(config.width, keys)
        self.v_proj = RowLinear(config.width, keys)
        self.o_proj = RowLinear(config.width, config.width, bias=False)
        self.q_norm, self.k_norm = RmsNorm(config.head), RmsNorm(config.head)
        self._head = config.head

    def heads(self, x: torch.Tensor, rotation: Rotation) -> Heads:
        """Of [L, D]."""
        queries, keys, values = (
            projection(x).view(len(x), projection.out_features // self._head, self._head)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        return rotation(self.q_norm(queries)), rotation(self.k_norm(keys)), values


class Mlp(nn.Module):
    """A gated MLP."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = (RowLinear(width, inner, bias=False) for _ in range(2))
        self.down_proj = RowLinear(inner, width, bias=False)

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """[L, D] -> [L, D]. `lengths`: tokens of each row.

        WHY by row: the activation's kernel treats the last elements of a tensor in another way.
        """
        gates = torch.cat([functional.silu(part) for part in by_row(self.gate_proj(x), lengths)])
        return torch.as_tensor(self.down_proj(gates * self.up_proj(x)))


class ExpertLayer(nn.Module):
    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = Mlp(config.width, config.inner)
        self.input_layernorm, self.post_attention_layernorm = (
            RmsNorm(config.width) for _ in range(2)
        )

    def heads(self, x: torch.Tensor, rotation: Rotation) -> Heads:
        """Of [L, D], before attention."""
        return self.self_attn.heads(self.input_layernorm(x), rotation)

    def after(
        self, x: torch.Tensor, attended: torch.Tensor, lengths: Sequence[int]
    ) -> torch.Tensor:
        """[L, D] of the layer's input and of what attention made -> [L, D]."""
        x = x + self.self_attn.o_proj(attended)
        return x + torch.as_tensor(self.mlp(self.post_attention_layernorm(x), lengths))


class Expert(nn.Module):
    """All layers of one set, and its last norm."""

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(ExpertLayer(config) for _ in range(config.layers))
        self.norm = RmsNorm(config.width)

    def layer(self, index: int) -> ExpertLayer:
        """One of them."""
        found = self.layers[index]
        assert isinstance(found, ExpertLayer)
        return found
