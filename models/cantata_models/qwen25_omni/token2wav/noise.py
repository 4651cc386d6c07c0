"""The noise from which a request's sound is made, fixed by position.

Every window that covers a block of mel frames starts from the same noise there, whenever and
wherever it is computed.
"""

from __future__ import annotations

import numpy as np
import torch


def block_noise(
    seed: int, first_block: int, frames: int, block_size: int, mels: int
) -> torch.Tensor:
    """Return normal noise for mel frames that begin with a block.

    Args:
        seed: any integer, taken modulo 2**64.
        first_block: number of the first block in its stream.
        frames: how many; the last block may be cut.
        block_size: frames of a block.
        mels: values of a frame.

    Returns:
        [frames, mels] float32.
    """
    blocks = range(first_block, first_block + -(-frames // block_size))
    drawn = [
        np.random.default_rng((seed % 2**64, block)).standard_normal((block_size, mels), np.float32)
        for block in blocks
    ]
    return torch.from_numpy(np.concatenate(drawn)[:frames])
