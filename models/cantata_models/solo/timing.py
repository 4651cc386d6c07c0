"""Computes word timings from phone durations.

Letters: N phones.
"""

from __future__ import annotations

import torch

from cantata.contract.data.chunks import WordTiming
from cantata_models.solo.networks.text_track import SLOT_S
from cantata_models.solo.text.tokens import SIL_ID


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
