"""The tiny talker on vLLM: Qwen3 layers.

Letters: N rows, D hidden size.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.models.qwen3 import Qwen3DecoderLayer

from cantata.contract.data.chunks import Codes, Payload, Rows
from cantata.contract.data.request import StageInput
from cantata.contract.model.embedding_source import EmbeddingSource, TalkerPrompt
from cantata.contract.model.talker import SAFE_MIN_ROWS
from tiny_talker.checkpoint import (
    CODEBOOK_SIZE,
    HEAD_DIM,
    HIDDEN,
    INTERMEDIATE,
    LAYERS,
    MAX_POSITIONS,
)
from tiny_talker.front import TinyTalkerFront
from tiny_talker.inputs import TinyInput
from tiny_talker.plugin import HEARD_FIRST


class TinyTalker(TinyTalkerFront):
    min_rows = SAFE_MIN_ROWS

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        self.layers = nn.ModuleList(
            Qwen3DecoderLayer(config, vllm_config.cache_config, prefix=f"{prefix}layers.{index}")
            for index in range(LAYERS)
        )
        self.norm = RMSNorm(HIDDEN, eps=1e-6)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        return {
            "model_type": "tiny_talker",
            "hidden_size": HIDDEN,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": HEAD_DIM,
            "intermediate_size": INTERMEDIATE,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-6,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
            "max_position_embeddings": MAX_POSITIONS,
            "vocab_size": CODEBOOK_SIZE + 1,
        }

    def load_checkpoint(self, checkpoint: Path) -> None:
        weights = load_file(checkpoint / "model.safetensors")
        # vLLM's attention has scales for quantized caches, which no checkpoint holds.
        missing, unexpected = self.load_state_dict(weights, strict=False)
        assert not unexpected, unexpected
        assert all(".attn._" in name for name in missing), missing

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D]."""
        assert inputs_embeds is not None
        hidden: torch.Tensor = inputs_embeds
        residual = None
        for layer in self.layers:
            hidden, residual = layer(positions, hidden, residual)
        hidden, _ = self.norm(hidden, residual)
        return hidden


class ExportingTalker(TinyTalker):
    """A row that leaves is the hidden state, and its double."""

    export_width = 2 * HIDDEN

    def export_rows(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.cat([hidden, 2 * hidden], dim=1)


class RepeatingTalker(TinyTalker):
    """Speaks what another talker says: its text is that one's first codes, as they come."""

    def open(self, inputs: TinyInput) -> EmbeddingSource:
        return HeardRows(self.text_embedding, inputs)


class HeardRows:
    """Begins with what an edge brings first, and adds a row for each of the others: an embedded
    code 0, or the first half of a row."""

    open = True

    def __init__(self, embedding: nn.Embedding, inputs: TinyInput) -> None:
        self._embedding = embedding
        self._inputs = inputs
        self._heard = embedding.weight.new_zeros(0, embedding.embedding_dim)

    def feed(self, item: StageInput | Payload, *, final: bool) -> None:
        assert isinstance(item, Codes | Rows)
        values = torch.from_numpy(item.values)
        if isinstance(item, Codes):
            rows = self._embedding(values[:, 0].long() % self._embedding.num_embeddings)
        else:
            rows = values[:, :HIDDEN]
        self._heard = torch.cat([self._heard, rows])
        self.open = not final

    def prompt(self) -> TalkerPrompt | None:
        if not self.open and not len(self._heard):
            return TalkerPrompt(self._heard, 0, max_frames=0)
        if len(self._heard) < HEARD_FIRST:
            return None
        rows, self._heard = self._heard[:HEARD_FIRST], self._heard[HEARD_FIRST:]
        frames = self._inputs.max_frames
        return TalkerPrompt(
            rows, HEARD_FIRST, frames, min_frames=frames, sampling=self._inputs.sampling
        )

    def more(self) -> torch.Tensor | None:
        heard, self._heard = self._heard, self._heard[:0]
        return heard if len(heard) else None


class PatientTalker(TinyTalker):
    """Its frames last long."""

    frame_period_s = 0.8
