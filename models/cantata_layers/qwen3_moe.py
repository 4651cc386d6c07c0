"""Qwen3's transformer with experts in vLLM's layers, as talkers use it: rows in, hidden states out.

Letters: N rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.models.qwen3_moe import Qwen3MoeDecoderLayer

from cantata_layers import qwen3
from cantata_layers.axial_rotation import AxialRotation, interleaved_axes
from cantata_layers.parameters import ParameterLoader
from cantata_layers.qwen3_config import Qwen3MoeStack
from cantata_layers.weights import WeightMap

EXPERT = re.compile(r"layers\.(\d+)\.mlp\.experts\.(\d+)\.(gate_proj|up_proj|down_proj)\.weight")
"""A published expert's tensor, behind the name of the stack."""
STACKED = ".mlp.experts."
"""In the names of the parameters that hold all experts of a layer."""


def config_fields(stack: Qwen3MoeStack, model_type: str, vocab_size: int) -> Mapping[str, Any]:
    """The sizes under the names of a Qwen3-MoE config, for `Talker.vllm_config_fields`."""
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
    """The rotary embedding that all layers of a stack share."""
    axes = interleaved_axes(stack.mrope_section)
    return AxialRotation(stack.layers.head_dim, stack.layers.rope_theta, axes)


class ExpertLoader(ParameterLoader):
    """Copies a stack's experts too, which vLLM's layers hold together.

    Args:
        targets: as `ParameterLoader`, as are `names` and `stacks`.
        layers: of the stack; their names begin with `layers.`.
    """

    def __init__(
        self,
        targets: Mapping[str, torch.Tensor],
        layers: nn.ModuleList,
        stack: Qwen3MoeStack,
        names: WeightMap,
        stacks: Collection[str] = (),
    ) -> None:
        others = {name: target for name, target in targets.items() if STACKED not in name}
        super().__init__(others, names, stacks)
        self._layers, self._stack = layers, stack
        self.missing.update(_iterate_experts(stack))

    def _copy(self, name: str, tensor: torch.Tensor) -> None:
        found = EXPERT.fullmatch(name)
        if found is None:
            super()._copy(name, tensor)
            return
        expert, projection = int(found[2]), found[3]
        decoder: Any = self._layers[int(found[1])]
        experts = decoder.mlp.experts
        # Not those of the layer: it may have only a share of each expert.
        count, size = self._stack.experts.count, self._stack.layers.hidden_size
        inner = self._stack.experts.size
        shape = (size, inner) if projection == "down_proj" else (inner, size)
        if tensor.shape != shape or expert >= count:
            raise ValueError(f"expected {list(shape)} of expert 0 to {count - 1}")
        list(experts.load_weights([(f"{expert}.{projection}.weight", tensor)]))


def _iterate_experts(stack: Qwen3MoeStack) -> Iterator[str]:
    for layer in range(stack.layers.layers):
        for expert in range(stack.experts.count):
            for projection in ("gate_proj", "up_proj", "down_proj"):
                yield f"layers.{layer}.mlp.experts.{expert}.{projection}.weight"
