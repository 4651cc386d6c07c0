"""The thinker for the AR stage: tokens in and out, with media's rows among them.

Letters: N rows, R requests, M of them of media, D hidden size, V tokens of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm

from cantata.contract.model.embedding_source import EmbeddingSource
from cantata.contract.model.row_products import RowLinear
from cantata.contract.model.talker import SAFE_MIN_ROWS, FrameDraws, Talker
from cantata_layers.omni.inputs import ThinkerInput
from cantata_layers.omni.thinker_rows import ThinkerRows
from cantata_layers.parameters import ParameterLoader
from cantata_layers.qwen3 import run_layers
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_layers.weights import WeightMap
from cantata_models.qwen25_omni.config import THINKER, load_thinker_config
from cantata_models.qwen25_omni.layers import make_layers, make_rotation, qwen2_config_fields
from cantata_models.qwen25_omni.prompt import turn_ids

NAMES = WeightMap({f"{THINKER}lm_head.{{}}": "lm_head.{}", f"{THINKER}model.{{}}": "{}"})


class Qwen25OmniThinker(nn.Module, Talker):
    """A talker whose frames are tokens.

    An input row is a token's embedding or an encoder's row, and behind it 0, or 1 for media. The
    row that leaves is the hidden state after the last norm plus the embedding; media have none.
    """

    num_codebooks = 1
    frame_period_s = None
    rotary_axes = 3
    shardable = True

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        model_config = vllm_config.model_config
        checkpoint = Path(model_config.model)
        config = load_thinker_config(checkpoint)
        stack = config.stack
        self._max_positions = model_config.max_model_len
        self._media_free_rows: torch.Tensor
        self.end_code: int | None = turn_ids(load_qwen_tokenizer(checkpoint), checkpoint).end
        self.row_width = stack.hidden_size + 1
        self.export_width = stack.hidden_size
        # Below float32 vLLM's products are not exact per row, for any number of rows.
        self.min_rows = SAFE_MIN_ROWS if model_config.dtype == torch.float32 else 1
        self.embed_tokens = nn.Embedding(stack.vocab_size, stack.hidden_size)
        self.rotation = make_rotation(stack, config.mrope_section)
        self.layers = make_layers(vllm_config, stack.layers, self.rotation, prefix)
        self.norm = RMSNorm(stack.hidden_size, eps=stack.rms_norm_eps)
        self.lm_head = RowLinear(stack.hidden_size, stack.vocab_size, bias=False)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        return qwen2_config_fields(load_thinker_config(checkpoint).stack)

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Load the parameters from the thinker's part of a published checkpoint."""
        loader = ParameterLoader(dict(self.named_parameters()), NAMES)
        loader.load_all(NAMES.read(checkpoint), checkpoint)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[3, N] positions and [N, D + 1] rows -> [N, D] hidden states."""
        assert inputs_embeds is not None
        rows, is_media = torch.split(inputs_embeds, [self.export_width, 1], dim=1)
        # A new tensor: vLLM's norms add to the layers' input in place.
        self._media_free_rows = rows * (1 - is_media)
        angles = self.rotation.angles(positions)
        return run_layers(self.layers, self.norm, angles, rows.contiguous())

    def export_rows(self, hidden: torch.Tensor) -> torch.Tensor:
        """[N, D]: of the last forward pass."""
        return hidden + self._media_free_rows

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V]."""
        scores: torch.Tensor = self.lm_head(hidden_states)
        return scores

    def open(self, inputs: ThinkerInput) -> EmbeddingSource:
        device = self.embed_tokens.weight.device
        rows = ThinkerRows(self.embed_frames, device, self.row_width, self._max_positions, _marked)
        return rows.open(inputs)

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, 1] -> [N, D]."""
        embedded: torch.Tensor = self.embed_tokens(frames[:, 0])
        return embedded

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R] tokens -> [R, 1]."""
        return code0[:, None]


def _marked(media: torch.Tensor) -> torch.Tensor:
    """[M, D] -> [M, D + 1]."""
    return functional.pad(media, (0, 1), value=1.0)
