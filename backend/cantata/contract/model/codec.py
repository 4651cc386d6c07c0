"""What a codec stage requires of a model's decoder.

Letters: B rows of this batch, T frames, Q codebooks, E columns, S samples per frame, C channels.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch


class StreamingDecoder(Protocol):
    """A causal, slot-indexed decoder: each frame is decoded once, streaming equals the whole.

    It is a `CodeDecoder` or a `LatentDecoder`.

    Each call yields exactly T * S samples per row; a look-ahead shows as a constant lag.
    In fp32 a row's samples do not depend on other rows, nor on how frames are chunked.
    """

    sample_rate: int
    """Hz."""
    channels: int
    """C."""
    samples_per_frame: int
    """S, per channel."""

    def init_state(self, slots: int) -> Any:
        """State for `slots` concurrent streams; opaque to the stage, indexed by slot inside."""
        ...

    def reset(self, state: Any, slots: torch.Tensor) -> None:
        """Reset these slots ([B] int64) in place."""
        ...

    def decode(self, state: Any, slots: torch.Tensor, frames: torch.Tensor, /) -> torch.Tensor:
        """Decode the next frames of these slots and advance their state in place.

        Args:
            state: from `init_state`.
            slots: [B] int64, all different.
            frames: [B, T, Q] int64 codes, or [B, T, E] float32 latents.

        Returns:
            [B, T * S, C] float32.
        """
        ...


@runtime_checkable
class CodeDecoder(StreamingDecoder, Protocol):
    """A decoder of codes."""

    num_codebooks: int
    """Q."""
    codebook_size: int


@runtime_checkable
class LatentDecoder(StreamingDecoder, Protocol):
    """A decoder of latents."""

    latent_size: int
    """E."""


@runtime_checkable
class SizedState(Protocol):
    """What a decoder has whose state is large: the server checks at its start that it fits."""

    slot_bytes: int
    """Memory of one slot's state."""
