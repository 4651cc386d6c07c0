"""The tiny talker but for its backbone: a text prompt of several rows, a local predictor that
samples.

Letters: N rows, R requests, D hidden size, Q codebooks, C codes, L text length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from cantata.contract.data.chunks import Rows, WordTiming
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.model.embedding_source import (
    DeferredRows,
    EmbeddingSource,
    StaticEmbeddings,
    StreamingEmbeddings,
    TalkerPrompt,
)
from cantata.contract.model.row_products import RowLinear, RowProducts
from cantata.contract.model.talker import FrameDraws, Talker
from tiny_talker.checkpoint import (
    CODEBOOK_SIZE,
    END_CODE,
    HIDDEN,
    NUM_CODEBOOKS,
    TEXT_VOCAB,
)
from tiny_talker.inputs import TinyInput, TinyText


class TinyTalkerFront(nn.Module, Talker):
    num_codebooks = NUM_CODEBOOKS
    frame_period_s = 0.08
    end_code: int | None = END_CODE

    def __init__(self) -> None:
        super().__init__()
        self.text_embedding = nn.Embedding(TEXT_VOCAB, HIDDEN)
        self.code_embeddings = nn.Parameter(torch.empty(NUM_CODEBOOKS, CODEBOOK_SIZE + 1, HIDDEN))
        self.code0_head = RowLinear(HIDDEN, CODEBOOK_SIZE + 1, bias=False)
        self._heads = RowProducts()
        self.local_heads = nn.Parameter(torch.empty(NUM_CODEBOOKS - 1, CODEBOOK_SIZE, HIDDEN))

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, C + 1]."""
        scores: torch.Tensor = self.code0_head(hidden_states)
        return scores

    def open(self, inputs: TinyInput) -> EmbeddingSource:
        text = torch.tensor(inputs.text)
        if text.numel() == 0:
            raise InvalidRequest("nothing to say", param="text")
        rows = self.text_embedding(text)
        if not inputs.follows:
            return self._begin(inputs, rows)

        def begin(encoded: Sequence[Any]) -> EmbeddingSource:
            sound = torch.from_numpy(encoded[0].values)
            return self._begin(inputs, torch.cat([sound.to(rows), rows]))

        return DeferredRows((Rows,), begin)

    def _begin(self, inputs: TinyInput, rows: torch.Tensor) -> EmbeddingSource:
        words = inputs.words
        word_s = inputs.max_frames * self.frame_period_s / max(1, words)
        prompt = TalkerPrompt(
            rows=rows,
            prompt_len=1 if inputs.track else len(rows),
            max_frames=inputs.max_frames,
            min_frames=inputs.min_frames,
            words=tuple(WordTiming(i, i * word_s, (i + 1) * word_s) for i in range(words)),
            context=None if inputs.context is None else torch.tensor(inputs.context),
            sampling=inputs.sampling,
        )
        return (
            StreamingEmbeddings(prompt, self._later_rows)
            if inputs.open
            else StaticEmbeddings(prompt)
        )

    def _later_rows(self, more: TinyText) -> torch.Tensor:
        rows: torch.Tensor = self.text_embedding(torch.tensor(more.text, dtype=torch.int64))
        return rows

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, Q] -> [N, D]."""
        rows: torch.Tensor = sum(
            (self.code_embeddings[book][frames[:, book]] for book in range(1, NUM_CODEBOOKS)),
            self.code_embeddings[0][frames[:, 0]],
        )
        return rows

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, D] and [R] -> [R, Q], each code given the ones before it."""
        codes = [code0]
        for book in range(1, NUM_CODEBOOKS):
            hidden = hidden + self.code_embeddings[book - 1][codes[-1]]
            logits = self._heads(hidden, self.local_heads[book - 1], None, key=book)
            codes.append(draws.choose(logits, book))
        return torch.stack(codes, dim=1)
