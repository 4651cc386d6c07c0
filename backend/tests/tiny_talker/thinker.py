"""A tiny thinker: tokens whose prompts stand on three axes and carry more than an embedding.

Letters: N rows, R requests, M encoded rows, D hidden size, W width of a wide row, A axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

import torch
from vllm.config import VllmConfig

from cantata.contract.data.chunks import Rows, to_array
from cantata.contract.model.embedding_source import (
    DeferredRows,
    EmbeddingSource,
    StaticEmbeddings,
    TalkerPrompt,
)
from cantata.contract.model.talker import FrameDraws
from tiny_talker.checkpoint import CODEBOOK_SIZE, HEAD_DIM, HIDDEN
from tiny_talker.inputs import TinyConversation
from tiny_talker.talker import ExportingTalker

MROPE_SECTION = [8, 4, 4]
assert sum(MROPE_SECTION) == HEAD_DIM // 2


class TinyThinker(ExportingTalker):
    """A thinker with rotary axes and deepstack embeddings that exports rows."""

    num_codebooks = 1
    rotary_axes = 3
    row_width = 2 * HIDDEN

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        # WHY not in the config itself: vLLM would ask the model for the positions then.
        config = copy(vllm_config)
        config.model_config = copy(vllm_config.model_config)
        config.model_config.hf_config = copy(vllm_config.model_config.hf_config)
        rope = {**config.model_config.hf_config.rope_parameters, "mrope_section": MROPE_SECTION}
        config.model_config.hf_config.rope_parameters = rope
        super().__init__(vllm_config=config, prefix=prefix)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        return {**super().vllm_config_fields(checkpoint), "vocab_size": CODEBOOK_SIZE + 1}

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[A, N] positions and [N, W] rows -> [N, D]; the first layer adds the other columns."""
        assert inputs_embeds is not None
        hidden, added = inputs_embeds[:, :HIDDEN], inputs_embeds[:, HIDDEN:]
        residual = None
        for number, layer in enumerate(self.layers):
            hidden, residual = layer(positions.long(), hidden, residual)
            if number == 0:
                hidden = hidden + added
        hidden, _ = self.norm(hidden, residual)
        return hidden  # type: ignore[no-any-return]

    def open(self, inputs: TinyConversation) -> EmbeddingSource:  # type: ignore[override]
        if not inputs.heard:
            return self._begin(inputs, torch.zeros(0, HIDDEN))
        return DeferredRows(
            (Rows,), lambda encoded: self._begin(inputs, torch.from_numpy(to_array(encoded[0])))
        )

    def _begin(  # type: ignore[override]
        self, inputs: TinyConversation, heard: torch.Tensor
    ) -> EmbeddingSource:
        """[M, D] rows of an encoder come before the tokens."""
        ids = torch.tensor(inputs.tokens)
        length = len(heard) + len(ids)
        rows = torch.zeros(length + 1, self.row_width)
        rows[: len(heard), :HIDDEN] = heard
        rows[len(heard) : -1, :HIDDEN] = self.text_embedding(ids)
        for place, values in inputs.added.items():
            rows[place, HIDDEN:] = torch.tensor(values)
        # Ids from here on stand for sounds: equal for equal ones.
        sounds = CODEBOOK_SIZE + 1 + (heard.double().sum(dim=1) * 1e6).long() % 2**30
        return StaticEmbeddings(
            TalkerPrompt(
                rows,
                prompt_len=length,
                max_frames=inputs.max_frames,
                min_frames=inputs.min_frames,
                sampling=inputs.sampling,
                positions=None if inputs.positions is None else torch.tensor(inputs.positions),
                token_ids=torch.cat([sounds, ids]),
                exports_rows=inputs.exports_rows,
            )
        )

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, 1] -> [N, D]: of the same tokens as the prompt's."""
        rows: torch.Tensor = self.text_embedding(frames[:, 0])
        return rows

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R] -> [R, 1]."""
        return code0[:, None]
