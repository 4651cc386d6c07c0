"""The history of a causal network: the positions before the current call.

Letters: S slots, B rows of one call, L positions, C channels, H positions of history.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass(slots=True)
class ConvCache:
    """The histories of some rows during one call.

    Each layer that looks back gets its history from `extend`. The order in which the layers run
    ties each history to its layer.
    """

    positions: torch.Tensor
    """[B] int64: number of frames before this call."""
    histories: list[torch.Tensor] | None
    """[B, H, C] per layer. None at the start of a stream, where zeros are used."""
    extended: list[torch.Tensor] = field(default_factory=list)
    """The histories after this call."""

    def extend(self, x: torch.Tensor, length: int) -> torch.Tensor:
        """Prepend the last `length` positions to x and store the new last ones.

        Args:
            x: [B, L, C].

        Returns:
            [B, length + L, C].
        """
        if self.histories is None:
            history = x.new_zeros(x.shape[0], length, x.shape[2])
        else:
            history = self.histories[len(self.extended)]
        context = torch.cat([history, x], dim=1)
        self.extended.append(context[:, context.shape[1] - length :])
        return context


@dataclass(frozen=True, slots=True)
class CodecState:
    """The decoder's state for each slot, created by `init_state` and updated by `decode`."""

    positions: torch.Tensor
    """[S] int64: number of frames decoded."""
    histories: tuple[torch.Tensor, ...]
    """[S, H, C] float32 for each layer that looks back."""

    def reset(self, slots: torch.Tensor) -> None:
        """Reset these slots ([B] int64) in place."""
        self.positions[slots] = 0
        for history in self.histories:
            history[slots] = 0.0

    def take(self, slots: torch.Tensor) -> ConvCache:
        """Copy these slots' rows."""
        return ConvCache(self.positions[slots], [history[slots] for history in self.histories])

    def put(self, slots: torch.Tensor, past: ConvCache, frames: int) -> None:
        """Write rows back after `frames` more frames, in place."""
        self.positions[slots] = past.positions + frames
        for mine, theirs in zip(self.histories, past.extended, strict=True):
            mine[slots] = theirs
