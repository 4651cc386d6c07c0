"""Qwen2's layers on vLLM, with rotary positions on three axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.models.llama import LlamaDecoderLayer

from cantata_layers.axial_rotation import AxialRotation, consecutive_axes
from cantata_layers.qwen3 import config_fields
from cantata_layers.qwen3_config import Qwen3Stack
from cantata_models.qwen25_omni.config import MODEL_TYPE


def qwen2_config_fields(stack: Qwen3Stack) -> Mapping[str, Any]:
    """For `Talker.vllm_config_fields`; only the first three products have biases."""
    return {**config_fields(stack, MODEL_TYPE, stack.vocab_size), "qkv_bias": True}


def make_rotation(stack: Qwen3Stack, sections: tuple[int, ...]) -> AxialRotation:
    """The rotary embedding that all layers of a stack share."""
    return AxialRotation(stack.head_dim, stack.rope_theta, consecutive_axes(sections))


def make_layers(
    vllm_config: VllmConfig, count: int, rotation: AxialRotation, prefix: str = ""
) -> nn.ModuleList:
    """This many layers, of the sizes in vLLM's config; `qwen3.run_layers` runs them, with
    `rotation.angles` for positions.

    Args:
        prefix: of the layers' names, by which vLLM finds their caches.
    """
    # Llama's layers are Qwen2's, and can have heads of any width.
    layers = [
        LlamaDecoderLayer(vllm_config, prefix=f"{prefix}layers.{index}") for index in range(count)
    ]
    for layer in layers:
        layer.self_attn.rotary_emb = rotation
    return nn.ModuleList(layers)
