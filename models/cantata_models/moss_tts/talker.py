"""The talkers of both models for the AR stage.

Letters: N rows, R requests, D hidden size, V codes, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from vllm.config import VllmConfig

from cantata.contract.data.chunks import Codes
from cantata.contract.model.embedding_source import (
    DeferredRows,
    EmbeddingSource,
    StaticEmbeddings,
    TalkerPrompt,
)
from cantata.contract.model.talker import SAFE_MIN_ROWS, FrameDraws, Talker
from cantata_layers.talker_parts import frame_limit
from cantata_models.moss_tts.backbones import Gpt2Backbone, Qwen3Backbone
from cantata_models.moss_tts.config import (
    FRAME_PERIOD_S,
    MossConfig,
    load_local_config,
    load_nano_config,
)
from cantata_models.moss_tts.frame_network import BegunFrames
from cantata_models.moss_tts.prompt import MossTalkerInput
from cantata_models.moss_tts.talker_network import MossBackbone, TalkerNetwork


class MossTalker(TalkerNetwork, Talker):
    """A talker of either model. `vllm_config`: vLLM's own."""

    frame_period_s = FRAME_PERIOD_S
    recordable = True
    penalizes_residual = True
    decides_stop = True

    def __init__(
        self, config: MossConfig, transformer: MossBackbone, vllm_config: VllmConfig
    ) -> None:
        super().__init__(config, transformer)
        model_config = vllm_config.model_config
        self.num_codebooks = config.num_codebooks
        self.end_code: int | None = config.end_code
        # Below float32 vLLM's products are not exact per row, for any number of rows.
        self.min_rows = SAFE_MIN_ROWS if model_config.dtype == torch.float32 else 1
        self._max_positions = model_config.max_model_len
        self._started: BegunFrames | None = None
        """Of the last `compute_logits`."""

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states."""
        assert inputs_embeds is not None
        return self.transformer(positions, inputs_embeds)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V + 1] scores of code 0; the end code has none."""
        self._started = self.frames.begin(hidden_states)
        return functional.pad(self._started.code0_scores, (0, 1), value=-torch.inf)

    def stop_scores(self) -> torch.Tensor:
        """[R, 2] scores of going on and of stopping."""
        return self._list_begun_frames().stop_scores

    def complete_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R] first codes of the rows of the last `compute_logits` -> [R, Q]."""
        return self.frames.complete(self._list_begun_frames(), code0, draws.choose)

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """As `complete_frames`; begins the frames again.

        WHY: as part of a graph, one position more costs less than carrying the past over.
        """
        return self.frames.complete(self.frames.begin(hidden), code0, draws.choose)

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, Q] -> [N, D]."""
        return self.frames.embed(frames)

    def open(self, inputs: MossTalkerInput) -> EmbeddingSource:
        """Embed the prompt's rows, once its recording is encoded if it has one. Raises
        InvalidRequest: the prompt leaves no room for sound."""
        if not inputs.prompt.gaps:
            return self._begin(inputs, ())

        def begin(encoded: Sequence[Any]) -> EmbeddingSource:
            return self._begin(inputs, [frames.values.astype(np.int64) for frames in encoded])

        return DeferredRows((Codes,), begin)

    def _begin(
        self, inputs: MossTalkerInput, recordings: Sequence[NDArray[np.int64]]
    ) -> EmbeddingSource:
        config = self._config
        layout = inputs.prompt.rows(recordings, config.num_codebooks, config.pad_code)
        frame_row = np.full((1, layout.shape[1]), config.pad_code)
        frame_row[0, 0] = config.tokens.assistant_slot
        rows = torch.from_numpy(np.concatenate((layout, frame_row)))
        context = torch.from_numpy(recordings[0]) if inputs.continues else None
        return StaticEmbeddings(
            TalkerPrompt(
                rows=self.embed_prompt(rows.to(self.transformer.text_table.device)),
                prompt_len=len(layout),
                max_frames=frame_limit(
                    len(layout),
                    self._max_positions,
                    inputs.max_frames,
                    self._config.generation.max_frames,
                ),
                context=context,
                sampling=inputs.sampling,
            )
        )

    def _list_begun_frames(self) -> BegunFrames:
        assert self._started is not None, "frames are completed before they are begun"
        return self._started


class LocalTalker(MossTalker):
    """MOSS-TTS-Local's."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        config = load_local_config(Path(vllm_config.model_config.model))
        super().__init__(config, Qwen3Backbone(config, vllm_config, prefix), vllm_config)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """Return the backbone's sizes under the names of a Qwen3 config."""
        return Qwen3Backbone.vllm_fields(load_local_config(checkpoint))


class NanoTalker(MossTalker):
    """MOSS-TTS-Nano's."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        config = load_nano_config(Path(vllm_config.model_config.model))
        super().__init__(config, Gpt2Backbone(config, vllm_config, prefix), vllm_config)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """Return the backbone's sizes under vLLM's names."""
        return Gpt2Backbone.vllm_fields(load_nano_config(checkpoint))
