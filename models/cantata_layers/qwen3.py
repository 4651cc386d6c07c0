"""Qwen3's transformer in vLLM's layers, as talkers use it: rows in, hidden states out.

A talker keeps `layers` and `norm` as its own modules; the rest is here. Letters: N rows, D hidden
size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig
from vllm.model_executor.models.qwen3 import Qwen3DecoderLayer

from cantata_layers.qwen3_config import Qwen3Sizes


def config_fields(sizes: Qwen3Sizes, model_type: str, vocab_size: int) -> Mapping[str, Any]:
    """The sizes under the names of a Qwen3 config, for `Talker.vllm_config_fields`."""
    return {
        "model_type": model_type,
        "hidden_size": sizes.hidden_size,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "head_dim": sizes.head_dim,
        "intermediate_size": sizes.intermediate_size,
        "hidden_act": "silu",
        "rms_norm_eps": sizes.rms_norm_eps,
        "rope_parameters": {"rope_type": "default", "rope_theta": sizes.rope_theta},
        "max_position_embeddings": sizes.max_positions,
        "vocab_size": vocab_size,
    }


def make_layers(
    vllm_config: VllmConfig,
    count: int,
    prefix: str = "",
    weights: QuantizationConfig | None = None,
) -> nn.ModuleList:
    """This many layers, of the sizes in vLLM's config.

    Args:
        prefix: of the layers' names, by which vLLM finds their caches.
        weights: how the products hold them; None: as vLLM does.
    """
    return nn.ModuleList(
        Qwen3DecoderLayer(
            vllm_config.model_config.hf_config,
            vllm_config.cache_config,
            weights,
            prefix=f"{prefix}layers.{index}",
        )
        for index in range(count)
    )


def run_layers(
    layers: nn.ModuleList, norm: nn.Module, positions: torch.Tensor, rows: torch.Tensor | None
) -> torch.Tensor:
    """[N] positions and [N, D] rows -> [N, D] hidden states."""
    hidden, residual = rows, None
    for layer in layers:
        hidden, residual = layer(positions, hidden, residual)
    normed: torch.Tensor = norm(hidden, residual)[0]
    return normed
