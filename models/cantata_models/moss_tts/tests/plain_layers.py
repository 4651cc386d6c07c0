"""vLLM's layers without its engine: built in this process, with a plain attention.

vLLM's own attention needs the engine's cache and scheduler.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.nn import functional
from transformers import PretrainedConfig
from vllm.config import (
    CacheConfig,
    CompilationConfig,
    CompilationMode,
    DeviceConfig,
    VllmConfig,
    set_current_vllm_config,
)
from vllm.distributed.parallel_state import (
    destroy_distributed_environment,
    destroy_model_parallel,
    init_distributed_environment,
    initialize_model_parallel,
    model_parallel_is_initialized,
)
from vllm.model_executor.models import qwen3

from cantata_models.moss_tts import backbones


@contextmanager
def plain_layers() -> Iterator[None]:
    """Inside, layers can be built; they can be run afterwards too."""
    config = VllmConfig(
        device_config=DeviceConfig(device="cpu"),
        compilation_config=CompilationConfig(mode=CompilationMode.NONE),
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        set_current_vllm_config(config),
        patch.object(qwen3, "Attention", PlainAttention),
        patch.object(backbones, "Attention", PlainAttention),
    ):
        # The layers ask for the number of processes that share them: one. An engine that other
        # tests use may have said so already.
        if model_parallel_is_initialized():
            yield
            return
        init_distributed_environment(1, 0, f"file://{Path(folder, 'meeting')}", 0, "gloo")
        initialize_model_parallel()
        try:
            yield
        finally:
            destroy_model_parallel()
            destroy_distributed_environment()


def layer_config(fields: Mapping[str, Any]) -> Any:
    """Return what layers read of vLLM's configuration.

    Args:
        fields: as `Talker.vllm_config_fields` returns them.
    """
    return SimpleNamespace(
        model_config=SimpleNamespace(hf_config=PretrainedConfig(**fields)),
        cache_config=CacheConfig(block_size=32),
    )


def lay_out_weights(backbone: nn.Module) -> None:
    """Let vLLM's products lay out their weights, as its loader does after loading."""
    for module in backbone.modules():
        method: Any = getattr(module, "quant_method", None)
        if method is not None:
            method.process_weights_after_loading(module)


def forget_requests(backbone: nn.Module) -> None:
    """Begin a new request in every layer."""
    for module in backbone.modules():
        if isinstance(module, PlainAttention):
            module.keys = module.values = None


class PlainAttention(nn.Module):
    """Causal attention over all positions of one request, in place of vLLM's class."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int,
        **unused: Any,
    ) -> None:
        super().__init__()
        self._heads, self._kv_heads = num_heads, num_kv_heads
        self._head_size, self._scale = head_size, scale
        self.keys: torch.Tensor | None = None
        self.values: torch.Tensor | None = None

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """[N, heads * size] of the next N positions -> [N, heads * size]."""
        queries = self._by_head(query, self._heads)
        self.keys = _extended(self.keys, self._by_head(key, self._kv_heads))
        self.values = _extended(self.values, self._by_head(value, self._kv_heads))
        new, whole = queries.shape[2], self.keys.shape[2]
        mask = torch.ones(new, whole, dtype=torch.bool).tril(whole - new)
        mixed = functional.scaled_dot_product_attention(
            queries, self.keys, self.values, mask, scale=self._scale, enable_gqa=True
        )
        return mixed[0].transpose(0, 1).flatten(1)

    def _by_head(self, rows: torch.Tensor, heads: int) -> torch.Tensor:
        """[N, heads * size] -> [1, heads, N, size]."""
        return rows.view(1, len(rows), heads, self._head_size).transpose(1, 2)


def _extended(past: torch.Tensor | None, new: torch.Tensor) -> torch.Tensor:
    return new if past is None else torch.cat((past, new), dim=2)
