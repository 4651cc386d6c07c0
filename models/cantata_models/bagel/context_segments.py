"""What stands in a context, cut into pieces of one forward each: none holds up others for longer
than a step of drawing does.

A picture cannot be cut: its tokens see each other both ways. A text can, since its tokens see only
those before them. What arrives for several pictures, one after the other, is cut into theirs.

Letters: T tokens of a text, L of a picture that is seen, N of latents, P numbers of such a token, D
width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.data.errors import RequestFailed
from cantata_layers.qwen_image.grid import Grid
from cantata_layers.qwen_image.transformer.packing import by_row
from cantata_models.bagel.config import MARKS, MAX_READ
from cantata_models.bagel.language_model import Context, ForwardOutput, Span
from cantata_models.bagel.reader import Reader


def make_rows(
    arrived: Mapping[str, Payload], port: str, lengths: Sequence[int]
) -> Sequence[torch.Tensor]:
    """The rows of each picture.

    Args:
        arrived: by port.
        lengths: rows of each picture.

    Raises:
        RequestFailed: they are not as many as the pictures have.
    """
    payload = arrived[port]
    if not isinstance(payload, Rows) or len(payload.values) != sum(lengths):
        raise RequestFailed(f"{port}: the pictures have {sum(lengths)} tokens, and others came")
    return by_row(torch.from_numpy(payload.values), lengths)


class ContextSegment(Protocol):
    """Tokens behind a context."""

    @property
    def is_text(self) -> bool:
        """Whether it is words rather than a picture."""
        ...

    @property
    def length(self) -> int:
        """Tokens, with the marks around a picture."""
        ...

    def span(self, reader: Reader, context: Context) -> Span:
        """What a forward is asked."""
        ...

    def read(self, context: Context, passed: ForwardOutput) -> Context:
        """The context with this piece behind it."""
        ...


@dataclass(frozen=True, slots=True)
class Words:
    """A text, or a part of one."""

    tokens: Sequence[int]

    @property
    def is_text(self) -> bool:
        return True

    @property
    def length(self) -> int:
        return len(self.tokens)

    def span(self, reader: Reader, context: Context) -> Span:
        """Each token at a position of its own."""
        return reader.text_span(context, self.tokens)

    def read(self, context: Context, passed: ForwardOutput) -> Context:
        return context.and_(passed.block, len(self.tokens))


@dataclass(frozen=True, slots=True)
class SeenPicture:
    """A picture as the vision transformer sees it."""

    rows: torch.Tensor
    """[L, D]"""

    @property
    def is_text(self) -> bool:
        """It is not."""
        return False

    @property
    def length(self) -> int:
        return len(self.rows) + MARKS

    def span(self, reader: Reader, context: Context) -> Span:
        """All tokens at one position."""
        return reader.seen_span(context, self.rows)

    def read(self, context: Context, passed: ForwardOutput) -> Context:
        return context.and_(passed.block, 1)


@dataclass(frozen=True, slots=True)
class KeptPicture:
    """A picture as latents without noise."""

    latents: torch.Tensor
    """[N, P]"""
    grid: Grid

    @property
    def is_text(self) -> bool:
        """It is not."""
        return False

    @property
    def length(self) -> int:
        return len(self.latents) + MARKS

    def span(self, reader: Reader, context: Context) -> Span:
        """All tokens at one position."""
        return reader.kept_span(context, self.latents, self.grid)

    def read(self, context: Context, passed: ForwardOutput) -> Context:
        return context.and_(passed.block, 1)


def words(tokens: Sequence[int]) -> list[Words]:
    """The pieces of a text [T]."""
    return [Words(tokens[at : at + MAX_READ]) for at in range(0, len(tokens), MAX_READ)]
