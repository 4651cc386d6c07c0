"""The talker for the AR stage: the backbone in vLLM's layers, the rest in plain torch.

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

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.embedding_source import EmbeddingSource
from cantata.contract.model.row_products import RowLinear
from cantata.contract.model.talker import SAFE_MIN_ROWS
from cantata_layers import qwen3_moe
from cantata_layers.checkpoint import read_tensors
from cantata_layers.code_predictor import PREDICTOR_STACKS, CodePredictor, predictor_names
from cantata_layers.qwen3 import run_layers
from cantata_layers.talker_parts import PredictedFrames, Projection, frame_limit
from cantata_layers.weights import WeightMap
from cantata_models.qwen3_omni.config import (
    EMBEDDINGS,
    FRAMES_PER_SECOND,
    MODEL_TYPE,
    RESERVED_CODES,
    TALKER,
    Qwen3OmniTalkerConfig,
    load_speech_config,
)
from cantata_models.qwen3_omni.talker_rows import (
    ANSWER_ROWS,
    Qwen3OmniAnswerRows,
    Qwen3OmniTalkerInput,
    RowTables,
)

NAMES = WeightMap(
    {
        **predictor_names(TALKER),
        f"{TALKER}codec_head.{{}}": "codec_head.{}",
        f"{TALKER}{{}}_projection.{{}}": "{}_projection.{}",
        f"{TALKER}model.{{}}": "{}",
        f"{TALKER}{{}}": "{}",
    }
)
TABLE_BLOCK = 1024
"""Tokens projected at a time when the checkpoint is loaded."""


class OmniTalker(PredictedFrames, nn.Module):
    rotary_axes = 3
    frame_period_s = 1 / FRAMES_PER_SECOND

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        model_config = vllm_config.model_config
        config, speech = load_speech_config(Path(model_config.model))
        talker, sizes = speech.talker, speech.talker.backbone.layers
        self._text_ids, self._talker, self._sampling = config.text, talker, speech.sampling
        self._max_positions = model_config.max_model_len
        self.num_codebooks = talker.num_codebooks
        self.end_code: int | None = talker.codec.eos
        # Below float32 vLLM's products are not exact per row, for any number of rows.
        self.min_rows = SAFE_MIN_ROWS if model_config.dtype == torch.float32 else 1
        self.rotation = qwen3_moe.make_rotation(talker.backbone)
        self.layers = qwen3_moe.make_layers(vllm_config, talker.backbone, self.rotation, prefix)
        self.norm = RMSNorm(sizes.hidden_size, eps=sizes.rms_norm_eps)
        thinker, inner = talker.thinker_hidden_size, talker.projection_size
        self.text_projection = Projection(thinker, inner, sizes.hidden_size)
        self.hidden_projection = Projection(thinker, inner, sizes.hidden_size)
        self.codec_embedding = nn.Embedding(sizes.vocab_size, sizes.hidden_size)
        self.codec_head = RowLinear(sizes.hidden_size, sizes.vocab_size, bias=False)
        self.code_predictor = CodePredictor(
            talker.predictor, sizes.hidden_size, talker.num_codebooks
        )
        table = torch.empty(config.thinker.backbone.layers.vocab_size, sizes.hidden_size)
        self.text_rows: torch.Tensor
        self.register_buffer("text_rows", table, persistent=False)
        self.suppressed: torch.Tensor
        self.register_buffer("suppressed", _mask_suppressed_codes(talker), persistent=False)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """Return the backbone's sizes under the names of a Qwen3-MoE config."""
        backbone = load_speech_config(checkpoint)[1].talker.backbone
        return qwen3_moe.config_fields(backbone, MODEL_TYPE, backbone.layers.vocab_size)

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Load the parameters from the talker's part of a published checkpoint, and project the
        thinker's embedding of every token."""
        loader = qwen3_moe.ExpertLoader(
            dict(self.named_parameters()),
            self.layers,
            self._talker.backbone,
            NAMES,
            PREDICTOR_STACKS,
        )
        loader.load_all(NAMES.read(checkpoint), checkpoint)
        self.code_predictor.project_embeddings()
        self._fill_text_rows(checkpoint)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] or [3, N] positions and [N, D] rows -> [N, D] hidden states."""
        return run_layers(self.layers, self.norm, self.rotation.angles(positions), inputs_embeds)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V]; the end code is the only control code that can be chosen."""
        scores: torch.Tensor = self.codec_head(hidden_states)
        return scores.masked_fill(self.suppressed, -torch.inf)

    def open(self, inputs: Qwen3OmniTalkerInput) -> EmbeddingSource:
        """Wait for the answer's first token, and for the rows of media in the user's turns.

        Raises:
            InvalidRequest: the prompt leaves no room for sound.
        """
        tables = RowTables(
            self.text_rows,
            self.codec_embedding.weight,
            self.hidden_projection,
            self._text_ids,
            self._talker.codec,
        )
        most = frame_limit(
            len(inputs.user) + ANSWER_ROWS,
            self._max_positions,
            inputs.max_frames,
            # The reference's last step of so many makes no frame.
            self._sampling.max_frames - 1,
            param="messages",
        )
        return Qwen3OmniAnswerRows(inputs, tables, most)

    def _fill_text_rows(self, checkpoint: Path) -> None:
        """Raises ConfigError: the thinker's embeddings are missing or of another shape."""
        (table,) = (tensor for _, tensor in read_tensors(checkpoint, EMBEDDINGS))
        expected = (len(self.text_rows), self._talker.thinker_hidden_size)
        if table.shape != expected:
            raise ConfigError(
                f"{checkpoint}: {EMBEDDINGS} must be {list(expected)}, not {list(table.shape)}"
            )
        start = 0
        with torch.no_grad():
            for block in torch.split(table, TABLE_BLOCK):
                projected = self.text_projection(block.to(self.text_rows))
                self.text_rows[start : start + len(block)] = projected
                start += len(block)


def _mask_suppressed_codes(config: Qwen3OmniTalkerConfig) -> torch.Tensor:
    """[V] bool: codes that are never chosen."""
    codes = torch.arange(config.backbone.layers.vocab_size)
    return (codes >= len(codes) - RESERVED_CODES) & (codes != config.codec.eos)
