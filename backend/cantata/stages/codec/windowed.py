"""A decoder run in windows: each chunk of frames is decoded after only a few frames of context.

For comparison with systems whose decoders keep no state. Their output is not that of decoding the
whole, and a frame costs (chunk + context) / chunk times as much.

Letters: B rows, T frames, Q codebooks, S samples per frame.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch

from cantata.contract.model.codec import StreamingDecoder


@dataclass(frozen=True, slots=True)
class WindowedState:
    """The decoder's own state, and the context for each slot's next window."""

    inner: Any
    positions: torch.Tensor
    """[slots] int64: frames decoded."""
    recent: torch.Tensor
    """[slots, context, Q] int64: the last frames, the newest at the end."""


class WindowedDecoder(StreamingDecoder):
    """Decodes over another decoder of codes.

    A window is decoded as its frames arrive: where one begins, the slot is reset and the frames
    before it are decoded once more, their sound dropped. So there is no lag and no wait for a full
    window, and a stream's samples do not depend on how its frames arrive.

    Args:
        chunk_frames: frames of a window whose sound is kept.
        context_frames: frames before them that each window starts with.
    """

    def __init__(self, inner: StreamingDecoder, chunk_frames: int, context_frames: int) -> None:
        self._inner = inner
        self._chunk, self._context = chunk_frames, context_frames
        self.sample_rate, self.channels = inner.sample_rate, inner.channels
        self.samples_per_frame = inner.samples_per_frame
        self.num_codebooks, self.codebook_size = inner.num_codebooks, inner.codebook_size

    @property
    def leading_silence(self) -> int:
        """The decoder's own."""
        return self._inner.leading_silence

    def init_state(self, slots: int) -> WindowedState:
        """State for `slots` concurrent streams."""
        positions = torch.zeros(slots, dtype=torch.int64)
        recent = torch.zeros(slots, self._context, self.num_codebooks, dtype=torch.int64)
        return WindowedState(self._inner.init_state(slots), positions, recent)

    def reset(self, state: WindowedState, slots: torch.Tensor) -> None:
        """Reset these slots, in place."""
        self._inner.reset(state.inner, slots)
        state.positions[slots] = 0

    def decode(
        self, state: WindowedState, slots: torch.Tensor, codes: torch.Tensor
    ) -> torch.Tensor:
        """Decode the next frames; arguments and result as in the protocol."""
        frames = codes.shape[1]
        by_position: defaultdict[int, list[int]] = defaultdict(list)
        for row, position in enumerate(state.positions[slots].tolist()):
            # Rows whose windows begin together, after equally many frames, go together.
            by_position[self._compute_phase(position)].append(row)
        parts: dict[int, torch.Tensor] = {}
        for rows in by_position.values():
            output = self._decode_together(state, slots[rows], codes[rows])
            parts |= dict(zip(rows, output, strict=True))
        state.positions[slots] += frames
        return torch.stack([parts[row] for row in range(len(slots))])

    def _compute_phase(self, position: int) -> int:
        """Equal for streams that are alike in all that windows depend on."""
        settled = -(-self._context // self._chunk) * self._chunk
        return position if position < settled else settled + position % self._chunk

    def _decode_together(
        self, state: WindowedState, slots: torch.Tensor, codes: torch.Tensor
    ) -> torch.Tensor:
        position, output = int(state.positions[slots[0]]), []
        while codes.shape[1]:
            if position % self._chunk == 0:
                self._begin_window(state, slots, min(position, self._context))
            now, codes = codes.tensor_split([self._chunk - position % self._chunk], dim=1)
            output.append(self._inner.decode(state.inner, slots, now))
            seen = torch.cat([state.recent[slots], now], dim=1)
            state.recent[slots] = seen[:, seen.shape[1] - self._context :]
            position += now.shape[1]
        return torch.cat(output, dim=1)

    def _begin_window(self, state: WindowedState, slots: torch.Tensor, context: int) -> None:
        self._inner.reset(state.inner, slots)
        if context:
            self._inner.decode(state.inner, slots, state.recent[slots, -context:])
