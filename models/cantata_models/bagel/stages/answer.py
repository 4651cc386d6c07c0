"""How an answer is made: a piece of the conversation or a token of the answer each step.

Source: `gen_text` of the publisher's inferencer.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cantata.contract.data.chunks import Payload
from cantata.contract.data.forward_size import ForwardSize
from cantata_models.bagel.inputs import AnswerInput, Seen
from cantata_models.bagel.network.context import Context
from cantata_models.bagel.network.mixture import ForwardOutput, Span
from cantata_models.bagel.network.reader import Reader
from cantata_models.bagel.ports import SEEN
from cantata_models.bagel.prompts import Texts
from cantata_models.bagel.sampling.thought import Thinker, Thought
from cantata_models.bagel.stages.arrived import make_rows
from cantata_models.bagel.stages.pieces import SeenPicture, Words, words


@dataclass(frozen=True, slots=True)
class Answering:
    """Steps of a token each."""

    text: Thought
    text_tokens: tuple[int, ...] = ()
    """The token of the last step; empty: there was none, or it ended the answer."""

    @property
    def steps_left(self) -> int:
        """If the answer takes all the tokens that it may."""
        return self.text.left

    def size(self) -> ForwardSize:
        """Of one token."""
        return self.text.context.size(1)

    def spans(self, reader: Reader) -> Sequence[Span]:
        """The next token."""
        return [reader.text_span(self.text.context, [self.text.next_token])]

    def after(self, reader: Reader, passed: Sequence[ForwardOutput]) -> Answering:
        """Behind that token."""
        text = self.text.grown(passed[0].block, reader.words.scores(passed[0].plain[0]))
        ended = text.next_token == text.thinker.end
        return Answering(text, () if ended else (text.next_token,))


@dataclass(frozen=True, slots=True)
class Listening:
    """Steps of a piece of the conversation each."""

    pieces: Sequence[Words | SeenPicture]
    """At least one is left."""
    text: Thought
    """It has not begun; its start grows."""
    done: int = 0
    """Pieces."""

    text_tokens = ()

    @property
    def steps_left(self) -> int:
        """With those of the answer."""
        return len(self.pieces) - self.done + self.text.left

    def size(self) -> ForwardSize:
        """Of the next piece."""
        return self.text.context.size(self.pieces[self.done].length)

    def spans(self, reader: Reader) -> Sequence[Span]:
        """The next piece."""
        return [self.pieces[self.done].span(reader, self.text.context)]

    def after(self, reader: Reader, passed: Sequence[ForwardOutput]) -> Listening | Answering:
        """Read on, or answer."""
        start = self.pieces[self.done].read(self.text.context, passed[0])
        text = replace(self.text, thinker=replace(self.text.thinker, start=start))
        if self.done + 1 < len(self.pieces):
            return replace(self, text=text, done=self.done + 1)
        return Answering(text)


def awaited_by_answer(inputs: AnswerInput) -> tuple[str, ...]:
    """Ports: of pictures as they are seen."""
    return (SEEN,) if _lengths(inputs) else ()


def begin_answer(inputs: AnswerInput, arrived: Mapping[str, Payload], texts: Texts) -> Listening:
    """An answer whose conversation is still to be read.

    Raises:
        RequestFailed: what arrived is not what was announced.
    """
    lengths = _lengths(inputs)
    seen = iter(make_rows(arrived, SEEN, lengths) if lengths else ())
    pieces: list[Words | SeenPicture] = []
    for part in inputs.parts:
        pieces += [SeenPicture(next(seen))] if isinstance(part, Seen) else words(part)
    thinker = Thinker(Context(), texts.end, inputs.most, inputs.temperature, inputs.seed)
    return Listening(pieces, Thought(thinker, texts.begin))


def _lengths(inputs: AnswerInput) -> list[int]:
    """Tokens of each picture."""
    return [part.tokens for part in inputs.parts if isinstance(part, Seen)]
