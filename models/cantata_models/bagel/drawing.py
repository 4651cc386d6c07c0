"""What a picture's job does in its next step: read what stands before it, think a token, read its
thought, or draw.

Guidance leads away from the velocity without the prompt, and away from that without the pictures.
Then the velocity is made no longer than it was. Source: `_forward_flow` of the publisher's
bagel.py.

Letters: N tokens of a picture, P numbers of a token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Protocol

import torch

from cantata.contract.data.forward_size import ForwardSize
from cantata_layers.qwen_image.sampling import euler
from cantata_models.bagel.config import MARKS
from cantata_models.bagel.context_segments import ContextSegment, Words
from cantata_models.bagel.inputs import Branch, Guidance, Renorm
from cantata_models.bagel.language_model import Context, ForwardOutput, Span
from cantata_models.bagel.prompt import BagelTokenizer
from cantata_models.bagel.reader import Reader
from cantata_models.bagel.writing import Thinker, ThoughtState

TINY = 1e-8


def guided(
    guidance: Guidance,
    full: torch.Tensor,
    no_text: torch.Tensor,
    no_images: torch.Tensor | None,
) -> torch.Tensor:
    """[N, P] float32 velocities of the branches -> the one to follow."""
    moved = no_text + guidance.text * (full - no_text)
    if guidance.renorm is Renorm.TEXT_CHANNEL:
        return _seen(guidance, moved * _compute_factor(guidance, full, moved, dim=-1), no_images)
    moved = _seen(guidance, moved, no_images)
    dim = -1 if guidance.renorm is Renorm.CHANNEL else None
    return moved * _compute_factor(guidance, full, moved, dim)


def _seen(
    guidance: Guidance, velocity: torch.Tensor, no_images: torch.Tensor | None
) -> torch.Tensor:
    if no_images is None:
        return velocity
    return no_images + guidance.image * (velocity - no_images)


def _compute_factor(
    guidance: Guidance, kept: torch.Tensor, moved: torch.Tensor, dim: int | None
) -> torch.Tensor:
    wanted, found = (
        torch.linalg.vector_norm(part, dim=dim, keepdim=True) for part in (kept, moved)
    )
    return torch.clamp(wanted / (found + TINY), min=guidance.min_scale, max=1.0)


class JobPhase(Protocol):
    """Steps of one kind, of a picture or of an answer. A forward answers `spans`; `after` says what
    to do next."""

    @property
    def steps_left(self) -> int:
        """The most forwards until the job is done; 0: it is done."""
        ...

    @property
    def text_tokens(self) -> tuple[int, ...]:
        """The token that the last step wrote; empty if it wrote none."""
        ...

    def size(self) -> ForwardSize:
        """How much the next forward computes."""
        ...

    def spans(self, reader: Reader) -> Sequence[Span]:
        """Return the tokens that the next forward computes."""
        ...

    def after(self, reader: Reader, passed: Sequence[ForwardOutput]) -> JobPhase:
        """Return the phase after that forward. This one stays as it is, so a failed step can be
        repeated."""
        ...


class PicturePhase(JobPhase, Protocol):
    @property
    def drawing(self) -> DrawingPhase: ...

    def after(self, reader: Reader, passed: Sequence[ForwardOutput]) -> PicturePhase: ...


@dataclass(frozen=True, slots=True)
class DrawingPhase:
    """Draws the picture by flow matching, one step per forward."""

    contexts: Mapping[Branch, Context]
    """Branches whose contexts are equal share one object. Empty until they are read."""
    times: Sequence[float]
    guidance: Guidance
    places: torch.Tensor
    """[N] rows of the table of positions."""
    latents: torch.Tensor
    """[N, P] float32, as `velocity`."""
    velocity: torch.Tensor | None = None
    step: int = 0

    text_tokens = ()

    @property
    def drawing(self) -> DrawingPhase:
        return self

    @property
    def time(self) -> float:
        """The share of noise in the latents."""
        return self.times[self.step]

    @property
    def steps_left(self) -> int:
        return len(self.times) - 1 - self.step

    def size(self) -> ForwardSize:
        own = len(self.latents) + MARKS
        return reduce(add, (context.size(own) for context in self._list_asked()))

    def spans(self, reader: Reader) -> Sequence[Span]:
        """Return a span of the picture for each context."""
        return [
            reader.latent_span(context, self.latents, self.time, self.places)
            for context in self._list_asked()
        ]

    def after(self, reader: Reader, passed: Sequence[ForwardOutput]) -> DrawingPhase:
        found = [reader.latents.velocities(one.drawn) for one in passed]
        asked = self._list_asked()
        velocities = {
            branch: next(v for c, v in zip(asked, found, strict=True) if c is self.contexts[branch])
            for branch in self.guidance.branches(self.time)
        }
        velocity = velocities[Branch.FULL]
        if Branch.NO_TEXT in velocities:
            no_images = velocities.get(Branch.NO_IMAGES)
            no_text = velocities[Branch.NO_TEXT]
            velocity = guided(self.guidance, velocity, no_text, no_images)
        latents = euler(self.latents, velocity, self.time, self.times[self.step + 1])
        return replace(self, latents=latents, velocity=velocity, step=self.step + 1)

    def _list_asked(self) -> list[Context]:
        """Return the contexts of this step's branches, each once. Without pictures or a thought,
        two of the branches have the same."""
        asked: list[Context] = []
        for branch in self.guidance.branches(self.time):
            context = self.contexts[branch]
            if not any(context is other for other in asked):
                asked.append(context)
        return asked


@dataclass(frozen=True, slots=True)
class RememberingPhase:
    """Reads a finished thought into the context, as a text, in one step."""

    text: tuple[int, ...]
    drawing: DrawingPhase

    text_tokens = ()

    @property
    def steps_left(self) -> int:
        """Includes the steps of drawing."""
        return 1 + self.drawing.steps_left

    def size(self) -> ForwardSize:
        return self.drawing.contexts[Branch.FULL].size(self._piece.length)

    def spans(self, reader: Reader) -> Sequence[Span]:
        return [self._piece.span(reader, self.drawing.contexts[Branch.FULL])]

    def after(self, reader: Reader, passed: Sequence[ForwardOutput]) -> DrawingPhase:
        full = self._piece.read(self.drawing.contexts[Branch.FULL], passed[0])
        contexts = {**self.drawing.contexts, Branch.FULL: full}
        return replace(self.drawing, contexts=contexts)

    @property
    def _piece(self) -> Words:
        """One piece holds the whole thought, which is never longer."""
        return Words(self.text)


@dataclass(frozen=True, slots=True)
class ThinkingPhase:
    """Writes a thought, a token per step."""

    thought: ThoughtState
    drawing: DrawingPhase
    texts: BagelTokenizer

    @property
    def steps_left(self) -> int:
        """Includes the phases that follow, for the longest thought."""
        return self.thought.left + 1 + self.drawing.steps_left

    def size(self) -> ForwardSize:
        return self.thought.context.size(1)

    def spans(self, reader: Reader) -> Sequence[Span]:
        return [reader.text_span(self.thought.context, [self.thought.next_token])]

    @property
    def text_tokens(self) -> tuple[int, ...]:
        return self.thought.tokens[-1:]

    def after(self, reader: Reader, passed: Sequence[ForwardOutput]) -> PicturePhase:
        scores = reader.words.scores(passed[0].plain[0])
        thought = self.thought.grown(passed[0].block, scores)
        if thought.ended:
            return RememberingPhase(self.texts.repeated_text(thought.tokens), self.drawing)
        return ThinkingPhase(thought, self.drawing, self.texts)


def _list_unread() -> Mapping[Branch, Context]:
    return dict.fromkeys(Branch, Context())


@dataclass(frozen=True, slots=True)
class ReadingPhase:
    """Reads what stands before the picture into its contexts, a piece per step."""

    segments: Sequence[ContextSegment]
    """At least one."""
    prompt_at: int
    """The number of pieces before the last text."""
    drawing: DrawingPhase
    """The phase that follows; its contexts are still empty."""
    thinker: Thinker | None
    """Has no start yet; None: the picture is drawn without a thought."""
    texts: BagelTokenizer
    contexts: Mapping[Branch, Context] = field(default_factory=_list_unread)
    """What is read so far. Branches whose contexts are equal share one object."""
    done: int = 0
    """The number of pieces that are read."""

    text_tokens = ()

    @property
    def steps_left(self) -> int:
        """Includes the phases that follow."""
        thinking = 0 if self.thinker is None else self.thinker.max_tokens + 1
        return len(self.segments) - self.done + thinking + self.drawing.steps_left

    def size(self) -> ForwardSize:
        length = self.segments[self.done].length
        return reduce(add, (context.size(length) for context in self._list_asked()))

    def spans(self, reader: Reader) -> Sequence[Span]:
        piece = self.segments[self.done]
        return [piece.span(reader, context) for context in self._list_asked()]

    def after(self, reader: Reader, passed: Sequence[ForwardOutput]) -> PicturePhase:
        piece, before = self.segments[self.done], self.contexts
        full = piece.read(before[Branch.FULL], passed[0])
        no_images = before[Branch.NO_IMAGES]
        if piece.is_text:
            # Without pictures they stay the same context, which is asked once.
            no_images = piece.read(no_images, passed[1]) if self._saw_pictures else full
        contexts = {
            Branch.FULL: full,
            Branch.NO_TEXT: full if self.done < self.prompt_at else before[Branch.NO_TEXT],
            Branch.NO_IMAGES: no_images,
        }
        if self.done + 1 < len(self.segments):
            return replace(self, contexts=contexts, done=self.done + 1)
        drawing = replace(self.drawing, contexts=contexts)
        if self.thinker is None:
            return drawing
        thinker = replace(self.thinker, start=full)
        return ThinkingPhase(ThoughtState(thinker, self.texts.begin), drawing, self.texts)

    def _list_asked(self) -> list[Context]:
        """Return the whole context, and the context of texts alone where a text follows
        pictures."""
        full, no_images = self.contexts[Branch.FULL], self.contexts[Branch.NO_IMAGES]
        apart = self.segments[self.done].is_text and self._saw_pictures
        return [full, no_images] if apart else [full]

    @property
    def _saw_pictures(self) -> bool:
        return self.contexts[Branch.FULL] is not self.contexts[Branch.NO_IMAGES]
