"""The talker for the AR stage: its backbone in vLLM's Qwen3 layers.

Letters: N rows, D hidden size.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm

from cantata.contract.model.talker import SAFE_MIN_ROWS
from cantata_layers.code_predictor import PREDICTOR_STACKS
from cantata_layers.parameters import ParameterLoader
from cantata_layers.qwen3 import config_fields, make_layers, run_layers
from cantata_models.qwen3_tts.config import MODEL_TYPE, load_config
from cantata_models.qwen3_tts.talker_front import NAMES, Qwen3TalkerFront


class Qwen3Talker(Qwen3TalkerFront):
    """The talker as vLLM serves it."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        model_config = vllm_config.model_config
        config = load_config(Path(model_config.model))
        super().__init__(config, model_config.max_model_len)
        # Below float32 vLLM's products are not exact per row, for any number of rows.
        self.min_rows = SAFE_MIN_ROWS if model_config.dtype == torch.float32 else 1
        self.layers = make_layers(vllm_config, config.talker.layers, prefix)
        self.norm = RMSNorm(config.talker.hidden_size, eps=config.talker.rms_norm_eps)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """Return the backbone's sizes under the names of a Qwen3 config."""
        talker = load_config(checkpoint).talker
        return config_fields(talker, MODEL_TYPE, talker.vocab_size)

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Load the parameters from the talker's part of a published checkpoint."""
        loader = ParameterLoader(dict(self.named_parameters()), NAMES, PREDICTOR_STACKS)
        loader.load_all(NAMES.read(checkpoint), checkpoint)
        self.code_predictor.project_embeddings()

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states."""
        return run_layers(self.layers, self.norm, positions, inputs_embeds)
