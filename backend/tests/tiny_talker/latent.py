"""Talkers whose frames are vectors.

Letters: N rows, R requests, D hidden size, E columns of latents, F frames, V tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from cantata.contract.model.embedding_source import EmbeddingSource
from cantata.contract.model.row_products import RowProducts
from cantata.contract.model.talker import FrameDraws
from tiny_talker.checkpoint import LATENT_SIZE
from tiny_talker.inputs import TinyInput
from tiny_talker.talker import HeardRows, TinyTalker

EULER_STEPS = 2


class LatentTalker(TinyTalker):
    """From noise in two steps of Euler's method, as flow matching does."""

    num_codebooks = 1
    end_code: int | None = 1
    latent_size = LATENT_SIZE
    noise_size = LATENT_SIZE

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._velocity = RowProducts()

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        return {**super().vllm_config_fields(checkpoint), "vocab_size": 2}

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V]: go on, or end."""
        return super().compute_logits(hidden_states)[:, :2]

    def draw_noise(self, seed: int, num_frames: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        frames = [torch.randn(self.noise_size, generator=generator) for _ in range(num_frames)]
        return torch.stack(frames)

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, E] -> [N, D]."""
        directions = self.local_heads[0, : self.latent_size]
        return (frames[:, :, None] * directions).sum(dim=1)

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, D] -> [R, E]."""
        latents = draws.noise
        assert latents is not None
        target = self._velocity(hidden, self.local_heads[1, : self.latent_size], None, key=0)
        for _ in range(EULER_STEPS):
            latents = latents + (target.tanh() - latents) / EULER_STEPS * 0.5
        return latents


class RepeatingLatentTalker(LatentTalker):
    """Speaks from another talker's hidden states, as they come."""

    def open(self, inputs: TinyInput) -> EmbeddingSource:
        return HeardRows(self.text_embedding, inputs)
