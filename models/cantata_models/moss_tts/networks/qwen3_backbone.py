"""The backbone of MOSS-TTS-Local: Qwen3 on vLLM's layers.

Letters: N rows, D hidden size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm

from cantata_layers.qwen3 import config_fields, make_layers, run_layers
from cantata_models.moss_tts.config.local import MODEL_TYPE, LocalConfig


class Qwen3Backbone(nn.Module):
    """Rows in, hidden states out; named as in the checkpoint.

    Args:
        prefix: of the layers' names, by which vLLM finds their caches.
    """

    def __init__(self, config: LocalConfig, vllm_config: VllmConfig, prefix: str) -> None:
        super().__init__()
        sizes = config.backbone
        self.embed_tokens = nn.Embedding(config.vocab_size, sizes.hidden_size)
        self.layers = make_layers(vllm_config, sizes.layers, prefix)
        self.norm = RMSNorm(sizes.hidden_size, eps=sizes.rms_norm_eps)

    @staticmethod
    def vllm_fields(config: LocalConfig) -> Mapping[str, Any]:
        """For `Talker.vllm_config_fields`; its vocabulary is codebook 0 with the end code."""
        return config_fields(config.backbone, MODEL_TYPE, config.end_code + 1)

    @property
    def text_table(self) -> torch.Tensor:
        """[tokens, D]: the embeddings of text tokens."""
        return self.embed_tokens.weight

    def forward(self, positions: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states."""
        return run_layers(self.layers, self.norm, positions, rows)
