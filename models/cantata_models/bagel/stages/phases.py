"""What a job does in its next step: think a token, read its thought, or draw.

Letters: N tokens of a picture, P numbers of a token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from cantata_layers.qwen_image.sampling.steps import euler
from cantata_models.bagel.network.context import Context
from cantata_models.bagel.network.mixture import Passed, Span
from cantata_models.bagel.network.reader import DrawingReader
from cantata_models.bagel.prompts import Texts
from cantata_models.bagel.sampling.guidance import Branch, Guidance
from cantata_models.bagel.sampling.thought import Thought


class Phase(Protocol):
    """Steps of one kind. A forward answers `spans`; `after` says what to do next."""

    @property
    def drawing(self) -> Drawing:
        """The picture as it is."""
        ...

    @property
    def steps_left(self) -> int:
        """Forwards until the picture is done, at most; 0: it is done."""
        ...

    def spans(self, reader: DrawingReader) -> Sequence[Span]:
        """What the next forward is asked."""
        ...

    def after(self, reader: DrawingReader, passed: Sequence[Passed]) -> Phase:
        """The phase behind that forward; this one does not change, so that a step may fail."""
        ...


@dataclass(frozen=True, slots=True)
class Drawing:
    """Steps of flow matching."""

    contexts: Mapping[Branch, Context]
    """Branches of equal contexts have the same object."""
    times: Sequence[float]
    guidance: Guidance
    places: torch.Tensor
    """[N] in the table of positions."""
    latents: torch.Tensor
    """[N, P] float32, as the next."""
    velocity: torch.Tensor | None = None
    """Of the last step."""
    step: int = 0

    @property
    def drawing(self) -> Drawing:
        """This."""
        return self

    @property
    def time(self) -> float:
        """The share of noise in the latents."""
        return self.times[self.step]

    @property
    def steps_left(self) -> int:
        """Of drawing."""
        return len(self.times) - 1 - self.step

    def spans(self, reader: DrawingReader) -> Sequence[Span]:
        """One for each context."""
        return [
            reader.latent_span(context, self.latents, self.time, self.places)
            for context in self._asked()
        ]

    def after(self, reader: DrawingReader, passed: Sequence[Passed]) -> Drawing:
        """One step on."""
        found = [reader.latents.velocities(one.drawn) for one in passed]
        asked = self._asked()
        velocities = {
            branch: next(v for c, v in zip(asked, found, strict=True) if c is self.contexts[branch])
            for branch in self.guidance.branches(self.time)
        }
        velocity = velocities[Branch.FULL]
        if Branch.NO_TEXT in velocities:
            no_images = velocities.get(Branch.NO_IMAGES)
            velocity = self.guidance.guided(velocity, velocities[Branch.NO_TEXT], no_images)
        latents = euler(self.latents, velocity, self.time, self.times[self.step + 1])
        return Drawing(
            self.contexts,
            self.times,
            self.guidance,
            self.places,
            latents,
            velocity,
            self.step + 1,
        )

    def _asked(self) -> list[Context]:
        """The contexts of this step's branches, each once: without pictures and thought, nothing
        but the prompt tells two of them apart."""
        asked: list[Context] = []
        for branch in self.guidance.branches(self.time):
            context = self.contexts[branch]
            if not any(context is other for other in asked):
                asked.append(context)
        return asked


@dataclass(frozen=True, slots=True)
class Remembering:
    """One step: a thought is read into the context, as a text."""

    text: tuple[int, ...]
    drawing: Drawing

    @property
    def steps_left(self) -> int:
        """With those of drawing."""
        return 1 + self.drawing.steps_left

    def spans(self, reader: DrawingReader) -> Sequence[Span]:
        """The text."""
        return [reader.text_span(self.drawing.contexts[Branch.FULL], self.text)]

    def after(self, reader: DrawingReader, passed: Sequence[Passed]) -> Drawing:
        """Draw with it."""
        full = self.drawing.contexts[Branch.FULL].and_(passed[0].block, len(self.text))
        contexts = {**self.drawing.contexts, Branch.FULL: full}
        given = self.drawing
        return Drawing(contexts, given.times, given.guidance, given.places, given.latents)


@dataclass(frozen=True, slots=True)
class Thinking:
    """Steps of a token each."""

    thought: Thought
    drawing: Drawing
    texts: Texts

    @property
    def steps_left(self) -> int:
        """With those that follow, if the thought takes all the tokens that it may."""
        return self.thought.left + 1 + self.drawing.steps_left

    def spans(self, reader: DrawingReader) -> Sequence[Span]:
        """The next token."""
        return [reader.text_span(self.thought.context, [self.thought.next_token])]

    def after(self, reader: DrawingReader, passed: Sequence[Passed]) -> Phase:
        """Think on, or read what was thought."""
        scores = reader.words.scores(passed[0].plain[0])
        thought = self.thought.grown(passed[0].block, scores)
        if thought.ended:
            return Remembering(self.texts.said_again(thought.tokens), self.drawing)
        return Thinking(thought, self.drawing, self.texts)
