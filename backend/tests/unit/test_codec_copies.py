"""What a codec's decoding copies to its device and back, and how often it waits for that."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pytest
import torch

from cantata.contract.model.codec import BlockDecoder, StreamingDecoder
from cantata.stages.codec.decoding import Queued, choose_decoding
from cantata.stages.common.device import Download
from pretended_device import device, in_own_process, pretended
from running_sum import RunningSumDecoder


class SumOnDevice(RunningSumDecoder):
    """It takes its inputs as they come."""

    def init_state(self, slots: int) -> torch.Tensor:
        return torch.zeros(slots, device=device())


class BlockSumOnDevice(BlockDecoder):
    """Blocks of two frames with one ahead, whose samples are sums."""

    channels, num_codebooks, block_frames, ahead_frames = 1, 2, 2, 1

    def init_state(self, slots: int) -> None:
        """It keeps nothing."""

    def decode_blocks(
        self,
        state: None,
        slots: torch.Tensor,
        frames: Sequence[torch.Tensor],
        last: Sequence[bool],
    ) -> Sequence[torch.Tensor]:
        there = (one.to(device(), non_blocking=True) for one in frames)
        return [one.sum(-1, keepdim=True).float() for one in there]


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize(
    ("made", "uploads", "downloads"), [(SumOnDevice, 2, 1), (BlockSumOnDevice, 2, 2)]
)
@in_own_process
def test_no_copy_waits_for_the_device_by_itself(
    made: type[StreamingDecoder | BlockDecoder], uploads: int, downloads: int
) -> None:
    codes = np.arange(8, dtype=np.int32).reshape(4, 2)
    rows = [Queued(slot, list(codes), False) for slot in (2, 0)]
    with pretended() as moves, patch.object(Download, "wait", autospec=True) as waited:
        waited.side_effect = lambda download: download._copy
        decoder = made()
        decoding, state = choose_decoding(decoder, device()), decoder.init_state(3)
        moves.clear()
        decoded = decoding.decode(state, rows, 2)
        assert [move.what for move in moves] == ["queued"] * (uploads + downloads)
        assert waited.call_count == downloads, "of events behind everything that was launched"
    assert [one.samples.sum() > 0 for one in decoded] == [True, True]
