"""The thinker for the AR stage: tokens in and out, with a sound's rows among them.

Letters: N rows, R requests, D hidden size, V tokens of the vocabulary.
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
from cantata.contract.model.talker import SAFE_MIN_ROWS, FrameDraws, Talker
from cantata_layers.checkpoint import read_tensors
from cantata_layers.omni.inputs import ThinkerInput
from cantata_layers.omni.thinker_rows import ThinkerRows
from cantata_layers.parameters import ParameterLoader
from cantata_layers.qwen3 import config_fields, make_layers, run_layers
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.qwen3_asr.config import (
    MODEL_TYPE,
    Qwen3AsrConfig,
    find_special_tokens,
    load_config,
)

HEAD = "lm_head.weight"


class Qwen3AsrThinker(nn.Module, Talker):
    """A talker whose frames are tokens.

    The published rotary positions have three axes, which hold the same numbers where there is sound
    alone: here they have one.
    """

    num_codebooks = 1
    frame_period_s = None

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        model_config = vllm_config.model_config
        checkpoint = Path(model_config.model)
        config = load_config(checkpoint)
        stack = config.stack
        tokens = find_special_tokens(load_qwen_tokenizer(checkpoint), config)
        self._max_positions = model_config.max_model_len
        self.end_code: int | None = tokens.im_end
        self._other_end = tokens.end_of_text
        # Below float32 vLLM's products are not exact per row, for any number of rows.
        self.min_rows = SAFE_MIN_ROWS if model_config.dtype == torch.float32 else 1
        self.embed_tokens = nn.Embedding(stack.vocab_size, stack.hidden_size)
        self.layers = make_layers(vllm_config, stack.layers, prefix)
        self.norm = RMSNorm(stack.hidden_size, eps=stack.rms_norm_eps)
        self.lm_head = RowLinear(stack.hidden_size, stack.vocab_size, bias=False)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """Return the backbone's sizes under the names of a Qwen3 config."""
        stack = load_config(checkpoint).stack
        return config_fields(stack, MODEL_TYPE, stack.vocab_size)

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Load the parameters from the language model's part of a published checkpoint."""
        config = load_config(checkpoint)
        loader = ParameterLoader(dict(self.named_parameters()))
        for name, tensor in read_tensors(checkpoint, config.names.network):
            loader.load(name, tensor)
        head = _read_head(checkpoint, config)
        if head is None:
            self.lm_head.weight = self.embed_tokens.weight
            loader.missing.discard(HEAD)
        else:
            loader.load(HEAD, head)
        loader.check_complete(checkpoint)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states."""
        return run_layers(self.layers, self.norm, positions, inputs_embeds)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V]."""
        scores: torch.Tensor = self.lm_head(hidden_states)
        return scores

    def open(self, inputs: ThinkerInput) -> EmbeddingSource:
        weight = self.embed_tokens.weight
        rows = ThinkerRows(
            self.embed_frames,
            weight.device,
            weight.shape[1],
            self._max_positions,
            option="prompt",
        )
        return rows.open(inputs)

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, 1] -> [N, D]."""
        embedded: torch.Tensor = self.embed_tokens(frames[:, 0])
        return embedded

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R] tokens -> [R, 1], with one token for either end."""
        assert self.end_code is not None
        return code0.masked_fill(code0 == self._other_end, self.end_code)[:, None]


def _read_head(checkpoint: Path, config: Qwen3AsrConfig) -> torch.Tensor | None:
    """[V, D]; None: it is the table of embeddings, and so in no file. Raises ConfigError: it is
    missing."""
    try:
        return dict(read_tensors(checkpoint, config.names.head)).get("weight")
    except ConfigError:
        if not config.is_tied:
            raise
        return None
