"""The thinker for the AR stage: tokens in and out, with media's rows among them.

Letters: N rows, R requests, D hidden size, W width of an input row: D, and D for each of the first
layers, which add features of pictures (DeepStack, arXiv:2406.04334). V tokens of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm

from cantata.contract.model.embedding_source import EmbeddingSource
from cantata.contract.model.row_products import RowLinear
from cantata.contract.model.talker import SAFE_MIN_ROWS, FrameDraws, Talker
from cantata_layers import qwen3_moe
from cantata_layers.omni.inputs import ThinkerInput
from cantata_layers.omni.thinker_rows import ThinkerRows
from cantata_layers.weights import WeightMap
from cantata_models.qwen3_omni.config import MODEL_TYPE, THINKER, load_config

NAMES = WeightMap({f"{THINKER}lm_head.{{}}": "lm_head.{}", f"{THINKER}model.{{}}": "{}"})


class OmniThinker(nn.Module, Talker):
    """A talker whose frames are tokens.

    A row that leaves is the hidden state behind the layers that the talker asks for.
    """

    num_codebooks = 1
    frame_period_s = None
    rotary_axes = 3
    shardable = True

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        model_config = vllm_config.model_config
        config = load_config(Path(model_config.model))
        thinker, sizes = config.thinker, config.thinker.backbone.layers
        self._backbone = thinker.backbone
        self._max_positions = model_config.max_model_len
        self._accepted = 0 if config.speech is None else config.speech.talker.accept_layer
        self._accepted_rows: torch.Tensor
        self.end_code: int | None = config.text.im_end
        self.row_width = sizes.hidden_size * (1 + thinker.deepstack_levels)
        self.export_width = sizes.hidden_size
        # Below float32 vLLM's products are not exact per row, for any number of rows.
        self.min_rows = SAFE_MIN_ROWS if model_config.dtype == torch.float32 else 1
        self.embed_tokens = nn.Embedding(sizes.vocab_size, sizes.hidden_size)
        self.rotation = qwen3_moe.make_rotation(self._backbone)
        self.layers = qwen3_moe.make_layers(vllm_config, self._backbone, self.rotation, prefix)
        self.norm = RMSNorm(sizes.hidden_size, eps=sizes.rms_norm_eps)
        self.lm_head = RowLinear(sizes.hidden_size, sizes.vocab_size, bias=False)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """Return the backbone's sizes under the names of a Qwen3-MoE config."""
        backbone = load_config(checkpoint).thinker.backbone
        return qwen3_moe.config_fields(backbone, MODEL_TYPE, backbone.layers.vocab_size)

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Load the parameters from the thinker's part of a published checkpoint."""
        targets = dict(self.named_parameters())
        loader = qwen3_moe.ExpertLoader(targets, self.layers, self._backbone, NAMES)
        loader.load_all(NAMES.read(checkpoint), checkpoint)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[3, N] positions and [N, W] rows -> [N, D] hidden states."""
        assert inputs_embeds is not None
        hidden, *added = torch.split(inputs_embeds, self.export_width, dim=1)
        hidden, residual = hidden.contiguous(), None
        angles = self.rotation.angles(positions)
        if not self._accepted:
            # A copy: vLLM's norms add to the layers' input in place.
            self._accepted_rows = hidden.clone()
        for number, layer in enumerate(self.layers):
            hidden, residual = layer(angles, hidden, residual)
            if number + 1 == self._accepted:
                self._accepted_rows = hidden + residual
            if number < len(added):
                hidden = hidden + added[number]
        normed: torch.Tensor = self.norm(hidden, residual)[0]
        return normed

    def export_rows(self, hidden: torch.Tensor) -> torch.Tensor:
        """[N, D]: of the last forward pass."""
        return self._accepted_rows

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V]."""
        scores: torch.Tensor = self.lm_head(hidden_states)
        return scores

    def open(self, inputs: ThinkerInput) -> EmbeddingSource:
        device = self.embed_tokens.weight.device
        rows = ThinkerRows(self.embed_frames, device, self.row_width, self._max_positions)
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
