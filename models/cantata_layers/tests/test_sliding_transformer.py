"""Attention by a mask, as on a GPU, is attention to copied windows; and it copies none."""

from __future__ import annotations

import pytest
import torch

from cantata_layers.sliding_transformer import plan_mask, plan_windows
from kernel_count import count_kernels

WINDOW = 5


@pytest.mark.parametrize("frames", [1, 3, 12])
@pytest.mark.parametrize("heads", [2, 6], ids=["own keys", "shared keys"])
def test_a_mask_does_what_copied_windows_do(frames: int, heads: int) -> None:
    """Streams that begin, that have fewer frames than a window, and longer ones."""
    torch.manual_seed(0)
    positions = torch.tensor([0, 2, WINDOW - 1, 90])
    query = torch.randn(4, frames, heads, 8)
    keys, values = torch.randn(2, 4, WINDOW - 1 + frames, 2, 8)
    exact, masked = (
        plan(positions, frames, WINDOW)(query, keys, values) for plan in (plan_windows, plan_mask)
    )
    torch.testing.assert_close(masked, exact.reshape(masked.shape))


def test_a_mask_is_one_kernel_for_attention_and_copies_no_window() -> None:
    positions = torch.zeros(4, dtype=torch.int64)
    query, (keys, values) = torch.randn(4, 3, 2, 8), torch.randn(2, 4, WINDOW + 2, 2, 8)
    attend = plan_mask(positions, 3, WINDOW)
    counts = count_kernels(attend, query, keys, values)
    assert set(counts) == {"scaled_dot_product_attention"}, counts
