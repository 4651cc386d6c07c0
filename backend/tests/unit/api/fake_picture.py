"""An `ImageModel` without an engine: pictures that follow from their requests, and exact counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Image, Progress
from cantata.contract.data.errors import InvalidRequest, Overloaded
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.image_service import Drawing, DrawingEvent
from cantata.contract.service import AdmissionReport

DRAWING = ImageLimits(
    default_size=(64, 48),
    multiple=16,
    min_side=32,
    max_pixels=256 * 256,
    default_steps=4,
    max_steps=10,
    default_guidance=2.0,
    max_guidance=8.0,
    options={"texture": {"type": "object"}},
)
EDITING = replace(DRAWING, min_references=1, max_references=2)
CONVERSING = replace(DRAWING, max_references=2, conversations=True)
SQUARE = 16
"""Pixels of a side."""
NO_PREVIEW = np.zeros((0, 0, 3), np.uint8)


@dataclass
class DrawingBehaviour:
    """How a fake model draws; tests change it before they send requests."""

    may_continue: asyncio.Event | None = None
    """Awaited before the second step."""
    thought: tuple[str, ...] = ()
    """What it thinks before it draws, a token each."""
    fail_after: int | None = None
    """Steps after which `error` is raised."""
    error: Exception | None = None
    slots: int = 1000
    full: bool = False


@dataclass
class DrawingCounts:
    """Counts of what the fake did."""

    open: int = 0
    max_open: int = 0
    finished: int = 0
    aborted: int = 0
    requests: list[ImageRequest] = field(default_factory=list)


def expected_picture(request: ImageRequest, width: int, height: int) -> NDArray[np.uint8]:
    """[H, W, 3]: what a request is answered with: squares of colours, which every part of the
    request changes."""
    pictures = [picture.tobytes() for picture in request.references]
    turns = [(t.role, [p.tobytes() for p in t.pictures], t.text) for t in request.earlier]
    pictures += [repr(turn).encode() for turn in turns]
    said = (request.prompt, request.negative_prompt, request.steps, request.guidance, pictures)
    seed = [request.seed, *repr(said).encode()]
    squares = height // SQUARE, width // SQUARE, 3
    colours = np.random.default_rng(seed).integers(0, 256, squares, np.uint8)
    return colours.repeat(SQUARE, axis=0).repeat(SQUARE, axis=1)


def draw_preview(request: ImageRequest, step: int) -> NDArray[np.uint8]:
    """[4, 4, 3]: one colour for each step."""
    return np.full((4, 4, 3), 20 * step + request.seed % 5, np.uint8)


class FakeImageModel:
    """Draws squares of colours that depends on the request alone."""

    def __init__(self, name: str, limits: ImageLimits = DRAWING) -> None:
        self.name = name
        self.limits = limits
        self.note = "It is a fake."
        self.behaviour = DrawingBehaviour()
        self.counts = DrawingCounts()
        self._ids = count()

    @property
    def admission(self) -> AdmissionReport:
        running, slots = self.counts.open, self.behaviour.slots
        return AdmissionReport(slots, running, 0, 0, {}, {}, slots, running)

    def check_room(self) -> None:
        if self.behaviour.full:
            raise Overloaded("every slot is taken", retry_after_s=2.5)

    @asynccontextmanager
    async def run(self, request: ImageRequest) -> AsyncIterator[Drawing]:
        how = self.behaviour
        if "\x00" in request.prompt:
            raise InvalidRequest("prompt: there is no word for it", "prompt")
        if self.counts.open >= how.slots:
            raise Overloaded("every slot is taken", retry_after_s=60.0)
        self.counts.requests.append(request)
        self.counts.open += 1
        self.counts.max_open = max(self.counts.max_open, self.counts.open)
        ended = [False]
        try:
            width, height = self.limits.default_size
            if request.width is not None and request.height is not None:
                width, height = request.width, request.height
            steps = request.steps or self.limits.default_steps
            yield Drawing(
                f"{self.name}-{next(self._ids)}",
                (),
                self._events(request, (width, height), steps, ended),
                width=width,
                height=height,
                steps=steps,
                prompt_tokens=len(request.prompt.split()),
                reference_tokens=10 * len(request.references),
            )
        finally:
            await asyncio.sleep(0)
            self.counts.finished += ended[0]
            self.counts.aborted += not ended[0]
            self.counts.open -= 1

    async def _events(
        self, request: ImageRequest, size: tuple[int, int], steps: int, ended: list[bool]
    ) -> AsyncIterator[DrawingEvent]:
        how = self.behaviour
        for word in how.thought:
            yield Thought(word, 1)
        for step in range(1, steps + 1):
            if how.fail_after == step - 1 and how.error is not None:
                raise how.error
            if step == 2 and how.may_continue is not None:
                await how.may_continue.wait()
            await asyncio.sleep(0)
            shown = draw_preview(request, step) if step <= request.previews else NO_PREVIEW
            yield Progress(shown, step, steps)
        ended[0] = True
        yield Image(expected_picture(request, *size))
