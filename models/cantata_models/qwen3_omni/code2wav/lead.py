"""Where a stream's sound begins, at every rate of the decoder.

The published transposed convolutions of the wave stages are cut at both ends: with r outputs for
each input, the first r are dropped, so that every output needs the input after its own. Streamed,
each of them lags by one input, and what a layer makes before the stream's beginning must be zero,
as the padding of the published convolutions is.

Letters: B rows, L positions, C channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch


@dataclass(frozen=True, slots=True)
class Lead:
    """Positions of one call that lie before the beginning of their streams."""

    frames: torch.Tensor
    """[B] int64: frames of each stream before this call."""
    begins: bool
    """Whether a stream may begin in this call. WHY: every lag is shorter than a frame, so no other
    call has such positions."""
    lag: int = 0
    """Positions by which a stream begins late."""
    positions_per_frame: int = 1

    @classmethod
    def of(cls, frames: torch.Tensor) -> Lead:
        """In front of all layers."""
        if frames.device.type != "cpu":
            # Reading a value would make the host wait; the masks of later calls change nothing.
            return cls(frames, begins=True)
        return cls(frames, begins=bool((frames == 0).any()))

    def raised(self, rate: int, *, lags: bool) -> Lead:
        """The same behind a layer that makes `rate` positions of one.

        Args:
            rate: outputs for each input.
            lags: whether it needs the input after.
        """
        return replace(
            self,
            lag=(self.lag + lags) * rate,
            positions_per_frame=self.positions_per_frame * rate,
        )

    def silenced(self, x: torch.Tensor) -> torch.Tensor:
        """[B, L, C] -> the same with zeros before the beginning of each stream."""
        if not self.begins or not self.lag:
            return x
        first = self.lag - self.frames * self.positions_per_frame
        places = torch.arange(x.shape[1], device=x.device)
        return x.masked_fill((places < first[:, None])[..., None], 0.0)
