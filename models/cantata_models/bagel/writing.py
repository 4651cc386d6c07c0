"""How text is made, a thought or an answer: a piece of the context or a token each step.

Source: `generate_text` of the publisher's bagel.py and `gen_text` of its inferencer.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from cantata.contract.data.chunks import Payload
from cantata.contract.data.forward_size import ForwardSize
from cantata_models.bagel.context_segments import SeenPicture, Words, make_rows, words
from cantata_models.bagel.inputs import AnswerInput, Seen
from cantata_models.bagel.language_model import BagelBlock, Context, ForwardOutput, Span
from cantata_models.bagel.plugin import SEEN
from cantata_models.bagel.prompt import BagelTokenizer
from cantata_models.bagel.reader import Reader


@dataclass(frozen=True, slots=True)
class Thinker:
    """What stays the same while a thought grows."""

    start: Context
    """Everything before it."""
    end: int
    """The token behind which nothing follows."""
    max_tokens: int
    """Tokens to compute at most."""
    temperature: float
    """0: always the likeliest token."""
    seed: int


@dataclass(frozen=True, slots=True)
class ThoughtState:
    """A thought or an answer after some of its tokens."""

    thinker: Thinker
    next_token: int
    """The token to compute next: the mark of begin at first, and the last one once the text has
    ended."""
    tokens: tuple[int, ...] = ()
    """Without the marks."""
    block: BagelBlock | None = None
    """Keys and values of the tokens so far."""
    ended: bool = False

    @property
    def computed(self) -> int:
        """The number of tokens that were computed."""
        return 0 if self.block is None else self.block.tokens

    @property
    def left(self) -> int:
        """The most tokens that may still be computed."""
        return 0 if self.ended else self.thinker.max_tokens - self.computed

    @property
    def context(self) -> Context:
        """The context, with what was thought so far."""
        start = self.thinker.start
        return start if self.block is None else start.and_(self.block, self.computed)

    def grown(self, block: BagelBlock, scores: torch.Tensor) -> ThoughtState:
        """The thought with the next token's keys and values, and the token that follows it.
        `scores`: [tokens] of those that may follow."""
        output = block if self.block is None else BagelBlock.join(self.block, block)
        chosen = self._choose(scores.cpu())
        # As the reference, which drops the token behind the last one that it may compute.
        ended = chosen == self.thinker.end or output.tokens == self.thinker.max_tokens
        if ended:
            return replace(self, block=output, next_token=chosen, ended=True)
        return replace(self, block=output, next_token=chosen, tokens=(*self.tokens, chosen))

    def _choose(self, scores: torch.Tensor) -> int:
        temperature = self.thinker.temperature
        if temperature == 0:
            return int(scores.argmax())
        shares = torch.softmax(scores / temperature, dim=-1)
        # A generator for each token: a step that fails and is tried again draws the same.
        generator = torch.Generator("cpu").manual_seed(self.thinker.seed + self.computed)
        return int(torch.multinomial(shares, 1, generator=generator))


@dataclass(frozen=True, slots=True)
class AnsweringPhase:
    """Writes an answer, a token per step."""

    text: ThoughtState
    text_tokens: tuple[int, ...] = ()
    """The token of the last step; empty: there was none, or it ended the answer."""

    @property
    def steps_left(self) -> int:
        """The most that the answer may take."""
        return self.text.left

    def size(self) -> ForwardSize:
        return self.text.context.size(1)

    def spans(self, reader: Reader) -> Sequence[Span]:
        return [reader.text_span(self.text.context, [self.text.next_token])]

    def after(self, reader: Reader, passed: Sequence[ForwardOutput]) -> AnsweringPhase:
        text = self.text.grown(passed[0].block, reader.words.scores(passed[0].plain[0]))
        ended = text.next_token == text.thinker.end
        return AnsweringPhase(text, () if ended else (text.next_token,))


@dataclass(frozen=True, slots=True)
class ListeningPhase:
    """Reads the conversation, a piece per step."""

    pieces: Sequence[Words | SeenPicture]
    """At least one is still to be read."""
    text: ThoughtState
    """The answer, which has not begun; its start grows with each piece."""
    done: int = 0
    """The number of pieces that are read."""

    text_tokens = ()

    @property
    def steps_left(self) -> int:
        """Includes the steps of the answer."""
        return len(self.pieces) - self.done + self.text.left

    def size(self) -> ForwardSize:
        return self.text.context.size(self.pieces[self.done].length)

    def spans(self, reader: Reader) -> Sequence[Span]:
        return [self.pieces[self.done].span(reader, self.text.context)]

    def after(
        self, reader: Reader, passed: Sequence[ForwardOutput]
    ) -> ListeningPhase | AnsweringPhase:
        start = self.pieces[self.done].read(self.text.context, passed[0])
        text = replace(self.text, thinker=replace(self.text.thinker, start=start))
        if self.done + 1 < len(self.pieces):
            return replace(self, text=text, done=self.done + 1)
        return AnsweringPhase(text)


def awaited_by_answer(inputs: AnswerInput) -> tuple[str, ...]:
    """Return the port at which the pictures of a conversation arrive, if it has any."""
    return (SEEN,) if _list_lengths(inputs) else ()


def begin_answer(
    inputs: AnswerInput, arrived: Mapping[str, Payload], texts: BagelTokenizer
) -> ListeningPhase:
    """An answer whose conversation is still to be read. Raises RequestFailed: what arrived is not
    what was announced."""
    lengths = _list_lengths(inputs)
    seen = iter(make_rows(arrived, SEEN, lengths) if lengths else ())
    pieces: list[Words | SeenPicture] = []
    for part in inputs.parts:
        pieces += [SeenPicture(next(seen))] if isinstance(part, Seen) else words(part)
    thinker = Thinker(Context(), texts.end, inputs.max_tokens, inputs.temperature, inputs.seed)
    return ListeningPhase(pieces, ThoughtState(thinker, texts.begin))


def _list_lengths(inputs: AnswerInput) -> list[int]:
    """Return the number of tokens of each picture."""
    return [part.tokens for part in inputs.parts if isinstance(part, Seen)]
