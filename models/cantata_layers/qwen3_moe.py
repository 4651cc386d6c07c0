"""Qwen3's transformer with experts in vLLM's layers, as talkers use it: rows in, hidden states out.

Letters: N rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.models.qwen3_moe import Qwen3MoeDecoderLayer

from cantata.contract.data.errors import ConfigError
from cantata_layers import qwen3
from cantata_layers.axial_rotation import AxialRotation, interleaved_axes
from cantata_layers.parameters import missing_parameters
from cantata_layers.qwen3_moe_config import Qwen3MoeStack

EXPERT = re.compile(r"layers\.(\d+)\.mlp\.experts\.(\d+)\.(gate_proj|up_proj|down_proj)\.weight")
"""A published expert's tensor, behind the name of the stack."""
STACKED = ".mlp.experts."
"""In the names of the parameters that hold all experts of a layer."""


def config_fields(stack: Qwen3MoeStack, model_type: str, vocab_size: int) -> Mapping[str, Any]:
    """For `Talker.vllm_config_fields`: the sizes under the names of a Qwen3-MoE config."""
    experts = stack.experts
    return {
        **qwen3.config_fields(stack.layers, model_type, vocab_size),
        "num_experts": experts.count,
        "num_experts_per_tok": experts.used,
        "moe_intermediate_size": experts.size,
        "shared_expert_intermediate_size": experts.shared_size,
        "norm_topk_prob": experts.renormalize,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def make_layers(
    vllm_config: VllmConfig, stack: Qwen3MoeStack, rotation: AxialRotation, prefix: str = ""
) -> nn.ModuleList:
    """The stack's layers, of the sizes in vLLM's config; `qwen3.run_layers` runs them, with
    `rotation.angles` for positions.

    Args:
        rotation: of the stack.
        prefix: of the layers' names, by which vLLM finds their caches.
    """
    layers = [
        Qwen3MoeDecoderLayer(vllm_config, prefix=f"{prefix}layers.{index}")
        for index in range(stack.layers.layers)
    ]
    for layer in layers:
        layer.self_attn.rotary_emb = rotation
    return nn.ModuleList(layers)


def make_rotation(stack: Qwen3MoeStack) -> AxialRotation:
    """For all layers of a stack."""
    axes = interleaved_axes(stack.mrope_section)
    return AxialRotation(stack.layers.head_dim, stack.layers.rope_theta, axes)


def load_expert(layers: nn.ModuleList, name: str, tensor: torch.Tensor) -> str | None:
    """Copy a published expert's tensor to its place.

    Args:
        name: from `layers.` on.

    Returns:
        The name; None: it is not an expert's.

    Raises:
        ConfigError: there is no such expert, or its shape differs.
    """
    found = EXPERT.fullmatch(name)
    if found is None:
        return None
    layer, expert, projection = int(found[1]), int(found[2]), found[3]
    try:
        decoder: Any = layers[layer]
        experts = decoder.mlp.experts
        count, size, inner = experts.routed_experts.w2_weight.shape
        shape = (size, inner) if projection == "down_proj" else (inner, size)
        if tensor.shape != shape or expert >= count:
            raise ValueError(f"expected {list(shape)} of expert 0 to {count - 1}")
        list(experts.load_weights([(f"{expert}.{projection}.weight", tensor)]))
    except (IndexError, ValueError) as error:
        raise ConfigError(
            f"{name} of {list(tensor.shape)} does not fit the talker: {error}"
        ) from error
    return name


def missing_with_experts(
    targets: Mapping[str, torch.Tensor], loaded: set[str], stack: Qwen3MoeStack
) -> set[str]:
    """What a checkpoint should have had, its experts included."""
    others = {name: target for name, target in targets.items() if STACKED not in name}
    return missing_parameters(others, loaded) | set(_experts(stack)) - loaded


def _experts(stack: Qwen3MoeStack) -> Iterator[str]:
    for layer in range(stack.layers.layers):
        for expert in range(stack.experts.count):
            for projection in ("gate_proj", "up_proj", "down_proj"):
                yield f"layers.{layer}.mlp.experts.{expert}.{projection}.weight"
