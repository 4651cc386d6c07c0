"""How the tokens of several rows lie in one tensor, and what is computed by row.

A row is one branch of one request. Products run over all rows at once; attention and modulation run
by row. On a CPU, functions whose kernels treat the last elements of a tensor in another way run by
row too, so that a row's float32 bits do not depend on its company.

Letters: L tokens of all rows, E columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Segment:
    """Neighbouring tokens with the same modulation."""

    tokens: int
    modulation: int
    """Index into the modulations of the step."""


@dataclass(frozen=True, slots=True)
class PackedStream:
    """The tokens of one kind, text or pictures, of all rows."""

    lengths: tuple[int, ...]
    """Tokens of each row."""
    segments: tuple[Segment, ...]

    @classmethod
    def of(cls, rows: Sequence[Sequence[Segment]]) -> PackedStream:
        """Of each row's segments in order."""
        lengths = tuple(sum(segment.tokens for segment in row) for row in rows)
        every = [segment for row in rows for segment in row if segment.tokens]
        merged = [
            Segment(sum(segment.tokens for segment in group), modulation)
            for modulation, group in groupby(every, key=lambda segment: segment.modulation)
        ]
        return cls(lengths, tuple(merged))

    def modulated(
        self, x: torch.Tensor, shifts: Sequence[torch.Tensor], scales: Sequence[torch.Tensor]
    ) -> torch.Tensor:
        """[L, E] -> x * (1 + scale) + shift, with [E] vectors by modulation."""
        parts = [
            part * (1 + scales[segment.modulation]) + shifts[segment.modulation]
            for part, segment in self._split_rows(x)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def add(self, x: torch.Tensor, gates: Sequence[torch.Tensor], change: torch.Tensor) -> None:
        """Add gate * change to x in place; [L, E] both, [E] vectors by modulation."""
        for (part, segment), (added, _) in zip(
            self._split_rows(x), self._split_rows(change), strict=True
        ):
            part.add_(gates[segment.modulation] * added)

    def gelu(self, x: torch.Tensor) -> torch.Tensor:
        """[L, E] -> [L, E]: GELU by its tanh approximation."""
        if x.device.type != "cpu" or len(self.lengths) == 1:
            return functional.gelu(x, approximate="tanh")
        return torch.cat(
            [functional.gelu(part, approximate="tanh") for part in by_row(x, self.lengths)]
        )

    def _split_rows(self, x: torch.Tensor) -> list[tuple[torch.Tensor, Segment]]:
        parts = by_row(x, [segment.tokens for segment in self.segments])
        return list(zip(parts, self.segments, strict=True))


def by_row(x: torch.Tensor, lengths: Sequence[int]) -> Sequence[torch.Tensor]:
    """Views of [L, ...], one of each length."""
    parts: Sequence[torch.Tensor] = torch.split(x, list(lengths))
    return parts
