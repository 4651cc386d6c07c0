"""The backbones of the talkers on vLLM's layers; modules are named as in the checkpoints.

MOSS-TTS-Local has Qwen3, MOSS-TTS-Nano GPT-2 blocks with rotary positions.

Letters: N rows, D hidden size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.activation import get_act_fn
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.layers.layernorm import LayerNorm, RMSNorm
from vllm.model_executor.layers.linear import (
    ColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
)
from vllm.model_executor.layers.rotary_embedding import get_rope

from cantata_layers.qwen3 import config_fields, make_layers, run_layers
from cantata_models.moss_tts.config import (
    LOCAL_MODEL_TYPE,
    NANO_MODEL_TYPE,
    Gpt2Stack,
    LocalConfig,
    NanoConfig,
)


class Qwen3Backbone(nn.Module):
    """Rows in, hidden states out; named as in the checkpoint. `prefix`: of the layers' names, by
    which vLLM finds their caches."""

    def __init__(self, config: LocalConfig, vllm_config: VllmConfig, prefix: str) -> None:
        super().__init__()
        sizes = config.backbone
        self.embed_tokens = nn.Embedding(config.vocab_size, sizes.hidden_size)
        self.layers = make_layers(vllm_config, sizes.layers, prefix)
        self.norm = RMSNorm(sizes.hidden_size, eps=sizes.rms_norm_eps)

    @staticmethod
    def vllm_fields(config: LocalConfig) -> Mapping[str, Any]:
        """For `Talker.vllm_config_fields`; its vocabulary is codebook 0 with the end code."""
        return config_fields(config.backbone, LOCAL_MODEL_TYPE, config.end_code + 1)

    @property
    def text_table(self) -> torch.Tensor:
        """[tokens, D]: the embeddings of text tokens."""
        return self.embed_tokens.weight

    def forward(self, positions: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states."""
        return run_layers(self.layers, self.norm, positions, rows)


class Gpt2Backbone(nn.Module):
    """Rows in, hidden states out. `prefix`: of the layers' names, by which vLLM finds their
    caches."""

    def __init__(self, config: NanoConfig, vllm_config: VllmConfig, prefix: str) -> None:
        super().__init__()
        stack = config.backbone
        self.wte = nn.Embedding(config.vocab_size, stack.hidden_size)
        self.h = nn.ModuleList(
            Gpt2Layer(stack, vllm_config, f"{prefix}h.{index}") for index in range(stack.layers)
        )
        self.ln_f = LayerNorm(stack.hidden_size, eps=stack.layer_norm_eps)

    @staticmethod
    def vllm_fields(config: NanoConfig) -> Mapping[str, Any]:
        """For `Talker.vllm_config_fields`; its vocabulary is codebook 0 with the end code."""
        stack = config.backbone
        return {
            "model_type": NANO_MODEL_TYPE,
            "hidden_size": stack.hidden_size,
            "num_hidden_layers": stack.layers,
            "num_attention_heads": stack.heads,
            "num_key_value_heads": stack.heads,
            "head_dim": stack.head_dim,
            "vocab_size": config.end_code + 1,
            "max_position_embeddings": stack.max_positions,
        }

    @property
    def text_table(self) -> torch.Tensor:
        """[tokens, D]: the embeddings of text tokens."""
        return self.wte.weight

    def forward(self, positions: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states."""
        for layer in self.h:
            rows = layer(positions, rows)
        return torch.as_tensor(self.ln_f(rows))


class Gpt2Layer(nn.Module):
    """Attention and feed-forward, each with a norm before it and a residual connection."""

    def __init__(self, stack: Gpt2Stack, vllm_config: VllmConfig, prefix: str) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(stack.hidden_size, eps=stack.layer_norm_eps)
        self.attn = Gpt2Attention(stack, vllm_config, f"{prefix}.attn")
        self.ln_2 = LayerNorm(stack.hidden_size, eps=stack.layer_norm_eps)
        self.mlp = Gpt2FeedForward(stack)

    def forward(self, positions: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """[N] and [N, D] -> [N, D]."""
        rows = rows + self.attn(positions, self.ln_1(rows))
        return rows + torch.as_tensor(self.mlp(self.ln_2(rows)))


class Gpt2Attention(nn.Module):
    """Causal attention; positions turn neighbouring pairs."""

    def __init__(self, stack: Gpt2Stack, vllm_config: VllmConfig, prefix: str) -> None:
        super().__init__()
        size, heads, head_dim = stack.hidden_size, stack.heads, stack.head_dim
        self.c_attn = QKVParallelLinear(size, head_dim, heads, bias=True)
        self.c_proj = RowParallelLinear(size, size, bias=True)
        self.rotary_emb = get_rope(
            head_dim,
            max_position=stack.max_positions,
            is_neox_style=False,
            rope_parameters={"rope_type": "default", "rope_theta": stack.rope_theta},
        )
        self.attn = Attention(
            heads,
            head_dim,
            head_dim**-0.5,
            num_kv_heads=heads,
            cache_config=vllm_config.cache_config,
            prefix=f"{prefix}.attn",
        )

    def forward(self, positions: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """[N] and [N, D] -> [N, D]."""
        query, key, value = self.c_attn(rows)[0].chunk(3, dim=-1)
        query, key = self.rotary_emb(positions, query, key)
        return torch.as_tensor(self.c_proj(self.attn(query, key, value))[0])


class Gpt2FeedForward(nn.Module):
    """Two products with a nonlinearity between them."""

    def __init__(self, stack: Gpt2Stack) -> None:
        super().__init__()
        self.fc_in = ColumnParallelLinear(stack.hidden_size, stack.intermediate_size, bias=True)
        self.fc_out = RowParallelLinear(stack.intermediate_size, stack.hidden_size, bias=True)
        self.act = get_act_fn(stack.activation.value)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """[N, D] -> [N, D]."""
        return torch.as_tensor(self.fc_out(self.act(self.fc_in(rows)[0]))[0])
