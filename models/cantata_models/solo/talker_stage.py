"""solo's talker for the AR stage. The backbone uses vLLM's layers; training shares the rest.

Letters: N rows, R requests, D hidden size, V codes in codebook 0, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.models.qwen3 import Qwen3DecoderLayer

from cantata.contract.data.errors import ConfigError
from cantata_models.solo.checkpoint import TALKER_FILE, read_tensors
from cantata_models.solo.half_weights import weights_of
from cantata_models.solo.talker_front import TalkerFront, read_config

FUSED = {
    "q_proj": ("qkv_proj", "q"),
    "k_proj": ("qkv_proj", "k"),
    "v_proj": ("qkv_proj", "v"),
    "gate_proj": ("gate_up_proj", 0),
    "up_proj": ("gate_up_proj", 1),
}
"""A checkpoint's projection -> vLLM's fused projection and the part of it."""


class SoloTalker(TalkerFront):
    """Implements `contract.model.talker.Talker`."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        model_config = vllm_config.model_config
        config = read_config(Path(model_config.model))
        super().__init__(config)
        self.layers = nn.ModuleList(
            Qwen3DecoderLayer(
                model_config.hf_config,
                vllm_config.cache_config,
                weights_of(model_config.dtype),
                prefix=f"{prefix}layers.{index}",
            )
            for index in range(config.talker.layers)
        )
        self.norm = RMSNorm(config.talker.hidden_size, eps=config.talker.rms_norm_eps)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """Returns the backbone's sizes under the names of a Qwen3 config."""
        config = read_config(checkpoint)
        talker = config.talker
        return {
            "model_type": config.model_type,
            "hidden_size": talker.hidden_size,
            "num_hidden_layers": talker.layers,
            "num_attention_heads": talker.heads,
            "num_key_value_heads": talker.kv_heads,
            "head_dim": talker.head_dim,
            "intermediate_size": talker.intermediate_size,
            "hidden_act": "silu",
            "rms_norm_eps": talker.rms_norm_eps,
            "rope_parameters": {"rope_type": "default", "rope_theta": talker.rope_theta},
            "max_position_embeddings": talker.max_positions,
            "vocab_size": config.codec.codebook_size,
        }

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Loads the backbone's fused projections and the shared parts."""
        targets = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        try:
            tensors = read_tensors(checkpoint / TALKER_FILE)
        except (FileNotFoundError, ValueError) as error:
            raise ConfigError(str(error)) from error
        loaded = {_load(targets, name, tensor) for name, tensor in tensors.items()}
        # vLLM's layers also hold tensors that no checkpoint has: cache scales and rotary tables.
        own = {name for name in targets if ".attn._" in name or ".rotary_emb." in name}
        missing = targets.keys() - own - loaded
        if missing:
            raise ConfigError(f"{checkpoint}: {TALKER_FILE} lacks {', '.join(sorted(missing))}")

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states."""
        hidden, residual = inputs_embeds, None
        for layer in self.layers:
            hidden, residual = layer(positions, hidden, residual)
        normed: torch.Tensor = self.norm(hidden, residual)[0]
        return normed


def _load(targets: Mapping[str, torch.Tensor], name: str, tensor: torch.Tensor) -> str:
    """Copies a checkpoint's tensor to its parameter or buffer.

    Returns:
        The name of the parameter or buffer.

    Raises:
        ConfigError: there is no such parameter or buffer, or its shape differs.
    """
    fused = next((part for part in FUSED if f".{part}." in name), None)
    target_name = name if fused is None else name.replace(fused, FUSED[fused][0])
    target = targets.get(target_name)
    if target is None:
        raise ConfigError(f"solo's talker has no parameter {name}")
    if fused is not None:
        target.weight_loader(target, tensor, FUSED[fused][1])  # type: ignore[attr-defined]
    elif target.shape == tensor.shape:
        target.data.copy_(tensor)
    else:
        raise ConfigError(f"{name} is {list(tensor.shape)}, solo's talker has {list(target.shape)}")
    return target_name
