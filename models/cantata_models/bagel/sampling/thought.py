"""What the model thinks before it draws, token by token, on a copy of the context.

Source: `generate_text` of the publisher's bagel.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from cantata_models.bagel.network.context import BagelBlock, Context


@dataclass(frozen=True, slots=True)
class Thinker:
    """What stays the same while a thought grows."""

    start: Context
    """Everything before it."""
    end: int
    """The token behind which nothing follows."""
    most: int
    """Tokens to compute at most."""
    temperature: float
    """0: always the likeliest token."""
    seed: int


@dataclass(frozen=True, slots=True)
class Thought:
    """One at some token."""

    thinker: Thinker
    next_token: int
    """To be computed, or the one that nothing follows; the mark of begin at first."""
    tokens: tuple[int, ...] = ()
    """Without the marks."""
    block: BagelBlock | None = None
    """Of what was computed."""
    ended: bool = False

    @property
    def computed(self) -> int:
        """Tokens."""
        return 0 if self.block is None else self.block.tokens

    @property
    def left(self) -> int:
        """Tokens that may still be computed."""
        return 0 if self.ended else self.thinker.most - self.computed

    @property
    def context(self) -> Context:
        """With what was thought so far."""
        start = self.thinker.start
        return start if self.block is None else start.and_(self.block, self.computed)

    def grown(self, block: BagelBlock, scores: torch.Tensor) -> Thought:
        """With the next token's keys and values, and the one that follows it.

        Args:
            block: of the next token.
            scores: [tokens] of those that may follow.
        """
        output = block if self.block is None else BagelBlock.join(self.block, block)
        chosen = self._chosen(scores.cpu())
        # As the reference, which drops the token behind the last one that it may compute.
        ended = chosen == self.thinker.end or output.tokens == self.thinker.most
        if ended:
            return replace(self, block=output, next_token=chosen, ended=True)
        return replace(self, block=output, next_token=chosen, tokens=(*self.tokens, chosen))

    def _chosen(self, scores: torch.Tensor) -> int:
        temperature = self.thinker.temperature
        if temperature == 0:
            return int(scores.argmax())
        shares = torch.softmax(scores / temperature, dim=-1)
        # A generator for each token: a step that fails and is tried again draws the same.
        generator = torch.Generator("cpu").manual_seed(self.thinker.seed + self.computed)
        return int(torch.multinomial(shares, 1, generator=generator))
