"""Frames whose code 0 is the talker's and whose other codes a predictor makes.

Letters: N rows, R requests, D hidden size, Q codebooks.
"""

from __future__ import annotations

import torch
from torch import nn

from cantata.contract.model.talker import FrameDraws, Talker
from cantata_layers.code_predictor import CodePredictor


class PredictedFrames(Talker):
    """A talker that embeds and makes frames with a code predictor."""

    recordable = True

    codec_embedding: nn.Embedding
    """Of codes 0."""
    code_predictor: CodePredictor

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, Q] -> [N, D]."""
        first = self.codec_embedding(frames[:, :1])
        return torch.cat((first, self.code_predictor.embed(frames[:, 1:])), dim=1).sum(dim=1)

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, D] and [R] -> [R, Q]."""
        others = self.code_predictor(hidden, self.codec_embedding(code0), draws.choose)
        return torch.cat((code0[:, None], others), dim=1)
