"""solo's talker for the AR stage. The backbone uses vLLM's layers; training shares the rest.

Letters: N rows, R requests, D hidden size, V codes in codebook 0, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm

from cantata.contract.data.errors import ConfigError
from cantata_layers.parameters import ParameterLoader
from cantata_layers.qwen3 import config_fields, make_layers, run_layers
from cantata_models.solo.checkpoint import TALKER_FILE, read_tensors
from cantata_models.solo.half_weights import get_weights
from cantata_models.solo.talker_front import TalkerFront, read_config


class SoloTalker(TalkerFront):
    """The talker as vLLM serves it."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        model_config = vllm_config.model_config
        config = read_config(Path(model_config.model))
        super().__init__(config)
        weights = get_weights(model_config.dtype)
        self.layers = make_layers(vllm_config, config.talker.layers, prefix, weights)
        self.norm = RMSNorm(config.talker.hidden_size, eps=config.talker.rms_norm_eps)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """Returns the backbone's sizes under the names of a Qwen3 config."""
        config = read_config(checkpoint)
        return config_fields(config.talker, config.model_type, config.codec.codebook_size)

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Loads the backbone's fused projections and the shared parts."""
        targets = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        try:
            tensors = read_tensors(checkpoint / TALKER_FILE)
        except (FileNotFoundError, ValueError) as error:
            raise ConfigError(str(error)) from error
        ParameterLoader(targets).load_all(tensors.items(), checkpoint / TALKER_FILE)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states."""
        return run_layers(self.layers, self.norm, positions, inputs_embeds)
