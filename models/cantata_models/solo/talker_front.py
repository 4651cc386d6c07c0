"""solo's talker but for its backbone: from phones to rows, from hidden states to frames.

Letters: N rows or phones, R requests, D hidden size, V codes in codebook 0, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cantata.contract.data.chunks import WordTiming
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.model.embedding_source import StaticEmbeddings, TalkerPrompt
from cantata.contract.model.talker import FrameDraws, Talker
from cantata_models.solo.config import SoloConfig
from cantata_models.solo.networks.talker_parts import FrameEmbedding, LatentHead
from cantata_models.solo.networks.text_track import (
    SLOT_S,
    SLOTS_PER_FRAME,
    TextTrackEncoder,
    TrackPlan,
)
from cantata_models.solo.plugin import TalkerInput
from cantata_models.solo.text.tokens import SIL_ID

FIRST_BLOCK = 8
"""Frames whose rows are made before the first packet."""
BLOCK = 32
"""Frames whose rows are made at once after that, in less time than a step takes."""


def word_timings(
    phones: torch.Tensor, word_starts: torch.Tensor, slots: torch.Tensor, lag_s: float
) -> tuple[WordTiming, ...]:
    """Returns the time of every word, from the start of its first phone to the end of its last.

    A silence after a word belongs to no word.

    Args:
        phones: [N] int64 ids.
        word_starts: [N] bool, true at the first phone of every word.
        slots: [N] int64, slots of 20 ms per phone.
        lag_s: delay of the decoder's output in seconds.
    """
    spans: list[list[int]] = []
    position = 0
    phone_rows = zip(phones.tolist(), word_starts.tolist(), slots.tolist(), strict=True)
    for phone, starts_word, length in phone_rows:
        if starts_word:
            spans.append([position, position])
        position += length
        if spans and phone != SIL_ID:
            spans[-1][1] = position
    return tuple(
        WordTiming(index, start * SLOT_S + lag_s, end * SLOT_S + lag_s)
        for index, (start, end) in enumerate(spans)
    )


class TalkerFront(nn.Module, Talker):
    """What the served and the plain talker share of `contract.model.talker.Talker`.

    The text track is as long as the utterance: one position is prefilled and each row beyond it
    makes a frame.
    """

    frame_period_s = SLOT_S * SLOTS_PER_FRAME
    end_code: int | None = None
    min_rows = 1

    def __init__(self, config: SoloConfig) -> None:
        super().__init__()
        codec, hidden = config.codec, config.talker.hidden_size
        self.num_codebooks = codec.codebooks
        self._lag_s = (codec.fft_size - codec.hop) / 2 / codec.sample_rate
        sizes = (codec.codebooks, codec.codebook_size, codec.latent_size, hidden)
        # Whatever the backbone's dtype: durations and nearest entries are decided in float32.
        self.frame_embedding = FrameEmbedding(*sizes).float()
        self.latent_head = LatentHead(*sizes, config.talker.temperature).float()
        self.text_track = TextTrackEncoder(config.text, len(config.voices), hidden).float()

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V]."""
        return self.latent_head.code0_logits(self.latent_head(hidden_states.float()))

    def open(self, inputs: TalkerInput) -> StaticEmbeddings:
        """Phones to a text track: durations are predicted here, before the first frame. Raises
        InvalidRequest: no phones, or a speed or voice that there is not."""
        phones = torch.as_tensor(inputs.phones, dtype=torch.int64)
        word_starts = torch.as_tensor(inputs.word_starts, dtype=torch.bool)
        try:
            plan = self.text_track.plan(
                phones,
                word_starts,
                inputs.question,
                self._find_speaker(inputs.speaker),
                inputs.speed,
                distinct=inputs.distinct,
            )
        except ValueError as error:
            raise InvalidRequest(str(error)) from error
        blocks = self._list_blocks(plan)
        rows = next(blocks)
        rows[0] += self.frame_embedding.bos()
        words = word_timings(phones, word_starts, plan.slots.cpu(), self._lag_s)
        prompt = TalkerPrompt(rows, 1, plan.frames, words=words, sampling=inputs.sampling)
        return StaticEmbeddings(prompt, blocks)

    def _list_blocks(self, plan: TrackPlan) -> Iterator[torch.Tensor]:
        """[L, D] rows of one block after the other."""
        first, last = 0, min(FIRST_BLOCK, plan.frames)
        while first < last:
            yield self.text_track.make_rows(plan, first, last)
            first, last = last, min(last + BLOCK, plan.frames)

    def _find_speaker(self, speaker: int | NDArray[np.float32]) -> torch.Tensor:
        """[F]: a stock voice's vector, or the one that the request brings."""
        if isinstance(speaker, int):
            return self.text_track.stock_speakers[speaker]
        return torch.as_tensor(speaker, dtype=torch.float32)

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, Q] -> [N, D]."""
        rows: torch.Tensor = self.frame_embedding(frames)
        return rows

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, D] and [R] -> [R, Q]: the codes nearest to what code 0 leaves of the latent."""
        return self.latent_head.complete(self.latent_head(hidden.float()), code0)
