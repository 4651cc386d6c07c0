"""What the network remembers of the tokens before: keys and values, and the next position.

Contexts share what they have in common: each is a row of blocks, and a longer one has the blocks of
the shorter one and more.

Letters: T tokens, K key heads, C columns of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch

from cantata.contract.data.forward_size import ForwardSize

KeysValues = tuple[torch.Tensor, torch.Tensor]
"""[T, K, C] each, of one layer."""


@dataclass(frozen=True, slots=True)
class BagelBlock:
    """Neighbouring tokens that were computed together."""

    layers: Sequence[KeysValues]

    @property
    def tokens(self) -> int:
        """T."""
        return len(self.layers[0][0])

    @classmethod
    def join(cls, first: BagelBlock, second: BagelBlock) -> BagelBlock:
        """Of the tokens of both."""
        pairs = zip(first.layers, second.layers, strict=True)
        return cls([(torch.cat([k, k2]), torch.cat([v, v2])) for (k, v), (k2, v2) in pairs])


@dataclass(frozen=True, slots=True)
class Context:
    """All tokens up to here."""

    blocks: tuple[BagelBlock, ...] = ()
    position: int = 0
    """Of the next token. All tokens of a picture have the same one."""

    @property
    def tokens(self) -> int:
        """In all blocks."""
        return sum(block.tokens for block in self.blocks)

    def and_(self, block: BagelBlock, positions: int) -> Context:
        """This context with one more block, which takes up so many positions."""
        return Context((*self.blocks, block), self.position + positions)

    def size(self, tokens: int) -> ForwardSize:
        """Of a forward of so many tokens behind this context."""
        return ForwardSize(tokens, tokens * (self.tokens + tokens))

    def before(self, layer: int, new: KeysValues) -> KeysValues:
        """Keys and values of a layer: the context's, then the new ones."""
        if not self.blocks:
            return new
        keys, values = zip(*chain((b.layers[layer] for b in self.blocks), (new,)), strict=True)
        return torch.cat(keys), torch.cat(values)
