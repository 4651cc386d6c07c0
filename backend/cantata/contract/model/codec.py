"""What a codec stage requires of a model's decoder.

Letters: B rows of this batch, T frames, Q codebooks, E columns, S samples per frame, C channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class Decoder:
    """The base class of decoders: a sound format, and state in slots.

    One takes codes or latents, frame by frame (`StreamingDecoder`) or in blocks (`BlockDecoder`).
    All but the format, `init_state`, `reset` and the decoding is optional: each default is a
    decoder without it.
    """

    sample_rate: int
    """Sample rate in Hz."""
    channels: int
    """C, the number of channels."""
    samples_per_frame: int
    """S, the samples of a frame per channel."""
    num_codebooks: int
    """Q, the number of codebooks, of a decoder of codes."""
    codebook_size: int
    """The number of codes in each, of a decoder of codes."""
    latent_size: int = 0
    """E, the size of a latent. 0: it takes codes."""

    @property
    def leading_silence(self) -> int:
        """Samples per channel of digital silence with which every stream begins, because layers
        need what follows. The stage does not send them: listeners would wait for nothing."""
        return 0

    @property
    def slot_bytes(self) -> int:
        """Memory of one slot's state, if it is large: the server checks at its start that it
        fits."""
        return 0

    def init_state(self, slots: int) -> Any:
        """State for `slots` concurrent streams; opaque to the stage, indexed by slot inside."""
        raise NotImplementedError

    def reset(self, state: Any, slots: torch.Tensor) -> None:
        """Reset these slots ([B] int64) in place."""
        raise NotImplementedError

    def condition(self, state: Any, slot: int, inputs: Any) -> None:
        """Prepare a slot that has just been reset, for a sound that depends on more than frames,
        such as a speaker or a seed.

        Args:
            inputs: the stage input that the request builder made; None if the request has none.

        Raises:
            CantataError: the request cannot be decoded.
        """


class StreamingDecoder(Decoder):
    """A causal, slot-indexed decoder: each frame is decoded once, streaming equals the whole.

    Each call yields exactly T * S samples per row; a look-ahead shows as a constant lag.
    In fp32 a row's samples do not depend on other rows, nor on how frames are chunked.
    """

    recordable: bool = False
    """The step can be recorded once and replayed (a CUDA graph): `decode` launches the same kernels
    whatever the values of its inputs are. On a GPU it reads none of them on the host, and all that
    it keeps between calls is in the state's tensors, which it, `reset` and `condition` change in
    place. One slot, which is no stream's, may come several times in `slots`."""

    def decode(self, state: Any, slots: torch.Tensor, frames: torch.Tensor, /) -> torch.Tensor:
        """Decode the next frames of these slots and advance their state in place.

        Args:
            state: from `init_state`.
            slots: [B] int64, all different.
            frames: [B, T, Q] int64 codes, or [B, T, E] float32 latents.

        Returns:
            [B, T * S, C] float32.
        """
        raise NotImplementedError


class BlockDecoder(Decoder):
    """A decoder that decodes whole blocks of frames and looks at some frames after each.

    The stage cuts a stream into blocks by its frames alone, so its samples do not depend on how the
    frames arrive; in fp32 they do not depend on other rows either. The sound of a stream's first
    blocks may come later, with that of the next ones, but not after its end.
    """

    block_frames: int
    """Frames of a block; the last one may have fewer."""
    ahead_frames: int
    """Frames after a block that it needs to be decoded, at least 1. At a stream's end there may be
    fewer."""

    def decode_blocks(
        self,
        state: Any,
        slots: torch.Tensor,
        frames: Sequence[torch.Tensor],
        last: Sequence[bool],
    ) -> Sequence[torch.Tensor]:
        """Decode the next block of each of these slots and advance their state in place.

        Args:
            state: from `init_state`.
            slots: [B] int64, all different.
            frames: B times [T, Q] int64 or [T, E] float32: a block, and the frames ahead of it.
            last: B times whether the block ends its stream; nothing is ahead of it then.

        Returns:
            B times [N, C] float32. In all a stream has S samples for each frame.
        """
        raise NotImplementedError
