"""What a causal network remembers of the positions before this call.

Letters: S slots, B rows of one call, L positions, C channels, H positions of history.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass(slots=True)
class Past:
    """The histories of some rows during one call.

    Each layer that looks back takes its history with `extend`, in the order in which the layers
    run; that order is what ties a history to its layer.
    """

    positions: torch.Tensor
    """[B] int64: frames before this call."""
    histories: list[torch.Tensor] | None
    """[B, H, C] of each layer; None: nothing was before, and zeros stand for it."""
    extended: list[torch.Tensor] = field(default_factory=list)
    """The histories after this call."""

    def extend(self, x: torch.Tensor, length: int) -> torch.Tensor:
        """Put the last `length` positions before x, and remember what comes last now.

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
    """What the decoder remembers of each slot. Made by `init_state`, changed by `decode`."""

    positions: torch.Tensor
    """[S] int64: frames decoded."""
    histories: tuple[torch.Tensor, ...]
    """[S, H, C] float32 of each layer that looks back."""

    def reset(self, slots: torch.Tensor) -> None:
        """Make these slots ([B] int64) as new, in place."""
        self.positions[slots] = 0
        for history in self.histories:
            history[slots] = 0.0

    def take(self, slots: torch.Tensor) -> Past:
        """Copy these slots' rows."""
        return Past(self.positions[slots], [history[slots] for history in self.histories])

    def put(self, slots: torch.Tensor, past: Past, frames: int) -> None:
        """Write rows back after `frames` more frames, in place."""
        self.positions[slots] = past.positions + frames
        for mine, theirs in zip(self.histories, past.extended, strict=True):
            mine[slots] = theirs
