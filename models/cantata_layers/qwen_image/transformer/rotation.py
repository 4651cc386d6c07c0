"""Rotary positions on three axes: the picture's number, its rows and its columns.

Rows and columns count from a picture's middle. The text stands behind the largest picture, on the
diagonal. Source: QwenEmbedRope in diffusers' transformer_qwenimage.py.

Letters: L tokens, H heads, F half a head's columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from cantata.contract.data.errors import InvalidRequest
from cantata_layers.qwen_image.grid import POSITIONS, Grid, first_text_position

THETA = 10_000


@dataclass(frozen=True, slots=True)
class TokenRotation:
    """The angles of some tokens: [L, F] float32 cosines and sines."""

    cos: torch.Tensor
    sin: torch.Tensor

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[L, H, 2 F] -> the same shape and dtype, turned in pairs of neighbouring columns.

        WHY no complex product: its last elements may be computed by another kernel, so a token's
        bits would depend on how many there are.
        """
        even, odd = x.float().reshape(*x.shape[:-1], -1, 2).unbind(-1)
        cos, sin = self.cos[:, None], self.sin[:, None]
        turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
        return turned.flatten(-2).to(x.dtype)

    @classmethod
    def join(cls, parts: Sequence[TokenRotation]) -> TokenRotation:
        """The rotation for the tokens of all parts; at least one part."""
        if len(parts) == 1:
            return parts[0]
        return cls(torch.cat([p.cos for p in parts]), torch.cat([p.sin for p in parts]))


class Positions:
    """Rotations of a model. `axes`: columns of a head that turn by frame, row and column."""

    def __init__(self, axes: Sequence[int], device: torch.device) -> None:
        places = torch.arange(-POSITIONS, POSITIONS)
        exponents = [torch.arange(0, axis, 2).float() / axis for axis in axes]
        tables = [torch.outer(places, 1.0 / torch.pow(THETA, e)) for e in exponents]
        self._cos = [table.cos().to(device) for table in tables]
        self._sin = [table.sin().to(device) for table in tables]

    def pictures(self, grids: Sequence[Grid]) -> TokenRotation:
        """The rotation for pictures' tokens, row by row; the first picture is the one that is
        drawn. Raises InvalidRequest: as `text`."""
        return TokenRotation.join(
            [self._rotate_picture(frame, grid) for frame, grid in enumerate(grids)]
        )

    def text(self, tokens: int, grids: Sequence[Grid]) -> TokenRotation:
        """The rotation for a text's tokens beside these pictures. Raises InvalidRequest: there are
        more positions than the model knows."""
        first = first_text_position(grids)
        places = torch.arange(first, first + tokens)
        return self._at(places, places, places)

    def _rotate_picture(self, frame: int, grid: Grid) -> TokenRotation:
        rows = torch.arange(grid.height) - (grid.height - grid.height // 2)
        columns = torch.arange(grid.width) - (grid.width - grid.width // 2)
        return self._at(
            torch.full((grid.tokens,), frame),
            rows.repeat_interleave(grid.width),
            columns.repeat(grid.height),
        )

    def _at(self, *places: torch.Tensor) -> TokenRotation:
        lowest, highest = min(int(p.min()) for p in places), max(int(p.max()) for p in places)
        if lowest < -POSITIONS or highest >= POSITIONS:
            raise InvalidRequest(
                f"positions {lowest} to {highest} of text and pictures; valid: {-POSITIONS} to "
                f"{POSITIONS - 1}, so a smaller picture or a shorter prompt",
                "size",
            )
        device = self._cos[0].device
        rows = [(place + POSITIONS).to(device) for place in places]
        return TokenRotation(
            torch.cat([table[row] for table, row in zip(self._cos, rows, strict=True)], dim=1),
            torch.cat([table[row] for table, row in zip(self._sin, rows, strict=True)], dim=1),
        )
