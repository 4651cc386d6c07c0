"""The two language models' layers, on vLLM's: MiniCPM4, which is a Llama with LongRoPE.

Modules are named as in the checkpoint. Letters: N rows, H hidden size, D head size.
"""

from __future__ import annotations

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.activation import SiluAndMul
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.linear import (
    MergedColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
)

from cantata_layers.code_predictor import CosSin
from cantata_models.voxcpm2.config import MiniCpmSizes
from cantata_models.voxcpm2.long_rope import apply_rotary, build_cos_sin


class MiniCpm(nn.Module):
    """Rows in, hidden states out.

    Args:
        vllm_config: of the engine; its max_model_len bounds the positions.
        first_layer: number of its first layer among all that the engine has a cache for.
    """

    def __init__(self, stack: MiniCpmSizes, vllm_config: VllmConfig, first_layer: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            MiniCpmLayer(stack, vllm_config, f"layers.{first_layer + index}")
            for index in range(stack.layers)
        )
        self.norm = RMSNorm(stack.hidden_size, eps=stack.rms_norm_eps)
        self._has_positions = stack.rope is not None
        self.cos: torch.Tensor
        self.sin: torch.Tensor
        if stack.rope is not None:
            cos, sin = build_cos_sin(stack.rope, vllm_config.model_config.max_model_len)
            self.register_buffer("cos", cos, persistent=False)
            self.register_buffer("sin", sin, persistent=False)

    def forward(self, positions: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """[N] positions and [N, H] rows -> [N, H] hidden states."""
        cos_sin: CosSin | None = None
        if self._has_positions:
            cos_sin = self.cos[positions][:, None], self.sin[positions][:, None]
        hidden, residual = rows, None
        for layer in self.layers:
            hidden, residual = layer(cos_sin, hidden, residual)
        return torch.as_tensor(self.norm(hidden, residual)[0])


class TextModel(MiniCpm):
    """The first of the two, which also embeds text."""

    def __init__(self, vocab_size: int, stack: MiniCpmSizes, vllm_config: VllmConfig) -> None:
        super().__init__(stack, vllm_config, first_layer=0)
        self.embed_tokens = nn.Embedding(vocab_size, stack.hidden_size)


class MiniCpmLayer(nn.Module):
    """Attention and perceptron, each with a norm before it and a residual connection."""

    def __init__(self, stack: MiniCpmSizes, vllm_config: VllmConfig, prefix: str) -> None:
        super().__init__()
        size, inner, eps = stack.hidden_size, stack.intermediate_size, stack.rms_norm_eps
        self.input_layernorm = RMSNorm(size, eps=eps)
        self.self_attn = SelfAttention(stack, vllm_config, f"{prefix}.self_attn")
        self.post_attention_layernorm = RMSNorm(size, eps=eps)
        self.mlp = Perceptron(size, inner)

    def forward(
        self, cos_sin: CosSin | None, hidden: torch.Tensor, residual: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """[N, H] and what is still to be added to it -> the same after this layer."""
        if residual is None:
            # The norm that takes both writes over what it is given.
            residual = hidden.clone(memory_format=torch.contiguous_format)
            hidden = self.input_layernorm(hidden)
        else:
            hidden, residual = self.input_layernorm(hidden, residual)
        hidden = self.self_attn(cos_sin, hidden)
        hidden, residual = self.post_attention_layernorm(hidden, residual)
        return self.mlp(hidden), residual


class SelfAttention(nn.Module):
    """Causal attention over a request's positions."""

    def __init__(self, stack: MiniCpmSizes, vllm_config: VllmConfig, prefix: str) -> None:
        super().__init__()
        self._head_dim = stack.head_dim
        queries, keys = stack.heads * stack.head_dim, stack.kv_heads * stack.head_dim
        self._split = (queries, keys, keys)
        self.qkv_proj = QKVParallelLinear(
            stack.hidden_size, stack.head_dim, stack.heads, stack.kv_heads, bias=False
        )
        self.o_proj = RowParallelLinear(queries, stack.hidden_size, bias=False)
        self.attn = Attention(
            stack.heads,
            stack.head_dim,
            stack.head_dim**-0.5,
            num_kv_heads=stack.kv_heads,
            cache_config=vllm_config.cache_config,
            prefix=f"{prefix}.attn",
        )

    def forward(self, cos_sin: CosSin | None, rows: torch.Tensor) -> torch.Tensor:
        """[N, H] -> [N, H]; the angles are [N, 1, D / 2]."""
        query, key, value = self.qkv_proj(rows)[0].split(self._split, dim=-1)
        if cos_sin is not None:
            query, key = (
                apply_rotary(part.unflatten(-1, (-1, self._head_dim)), cos_sin).flatten(1)
                for part in (query, key)
            )
        return torch.as_tensor(self.o_proj(self.attn(query, key, value))[0])


class Perceptron(nn.Module):
    """Two products with a gate between them."""

    def __init__(self, size: int, inner: int) -> None:
        super().__init__()
        self.gate_up_proj = MergedColumnParallelLinear(size, [inner, inner], bias=False)
        self.down_proj = RowParallelLinear(inner, size, bias=False)
        self.act_fn = SiluAndMul()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """[N, H] -> [N, H]."""
        return torch.as_tensor(self.down_proj(self.act_fn(self.gate_up_proj(rows)[0]))[0])
