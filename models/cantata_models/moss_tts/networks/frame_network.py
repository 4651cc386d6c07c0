"""What turns a hidden state of the backbone into a frame: the choice to stop, then Q codes.

MOSS-TTS-Local and MOSS-TTS-Nano use the same network in two ways. Position 0 of a frame is the
hidden state, and its output chooses between going on and stopping. In Local it also chooses code 0.
In Nano the choice to go on is a position of its own, whose output chooses code 0. Then each code is
the position whose output chooses the next one. A codebook's table of embeddings also is its head.

Letters: R requests, N rows, D hidden size, V codes, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from cantata.contract.model.row_products import RowLinear, RowProducts
from cantata_models.moss_tts.config.shared import MossConfig
from cantata_models.moss_tts.networks.local_transformer import FramePast, MossLocalTransformer

ChooseCode = Callable[[torch.Tensor, int], torch.Tensor]
"""[R, V] scores and the codebook -> [R] int64 codes."""
GO_ON = 0
"""Of the stop scores; the other one is to stop."""


@dataclass(frozen=True, slots=True)
class BegunFrames:
    """Frames before their first code is chosen."""

    stop_scores: torch.Tensor
    """[R, 2]: to go on, to stop."""
    code0_scores: torch.Tensor
    """[R, V]"""
    past: FramePast


class FrameNetwork(nn.Module):
    """Completes frames, and embeds them for the backbone."""

    def __init__(self, config: MossConfig) -> None:
        super().__init__()
        books, size = config.num_codebooks, config.local.hidden_size
        self._num_codebooks = books
        self._feeds_choice = config.stop_is_text
        self.audio_embeddings = nn.Parameter(torch.empty(books, config.codebook_size, size))
        self.local_text_lm_head = RowLinear(size, 2, bias=False)
        self.local_transformer = MossLocalTransformer(
            config.local, books + int(config.stop_is_text)
        )
        self._heads = RowProducts()

    def embed(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, Q] codes -> [N, D], the sum over codebooks."""
        books = torch.arange(self._num_codebooks, device=frames.device)
        return self.audio_embeddings[books, frames].sum(dim=1)

    def begin(self, hidden: torch.Tensor) -> BegunFrames:
        """Begin frames from [R, D] hidden states of the backbone, after its last norm."""
        past = self.local_transformer.begin(hidden)
        rows = hidden[:, None]
        if self._feeds_choice:
            choice = self.local_text_lm_head.weight[GO_ON].expand_as(hidden)
            rows = torch.stack((hidden, choice), dim=1)
        outputs = self.local_transformer(rows, past)
        return BegunFrames(
            stop_scores=self.local_text_lm_head(outputs[:, 0]),
            code0_scores=self._scores(outputs[:, -1], 0),
            past=past,
        )

    def complete(
        self, started: BegunFrames, code0: torch.Tensor, choose: ChooseCode
    ) -> torch.Tensor:
        """Choose the other codes of frames; a frame is completed once.

        Args:
            begun: the frames.
            code0: [R] int64 first codes. Behind one outside the codebook, which ends a request,
                the other codes mean nothing.
            choose: draws the codes of one codebook.

        Returns:
            [R, Q] int64.
        """
        codes, last = [code0], self.audio_embeddings.shape[1] - 1
        for book in range(1, self._num_codebooks):
            rows = self.audio_embeddings[book - 1][codes[-1].clamp(max=last)]
            outputs = self.local_transformer(rows[:, None], started.past)
            codes.append(choose(self._scores(outputs[:, 0], book), book))
        return torch.stack(codes, dim=1)

    def _scores(self, outputs: torch.Tensor, book: int) -> torch.Tensor:
        """[R, D] -> [R, V]."""
        return self._heads(outputs, self.audio_embeddings[book], None, key=book)
