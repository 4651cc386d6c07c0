"""A picture's events: what its stages leave, and what its caller has not read yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast

from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Chunk, Codes, Image, Progress
from cantata.contract.image_service import DrawingEvent
from cantata.contract.model.picture import ImageBuilder, ThinkingBuilder
from cantata.contract.model.pipeline import CLIENT, EdgeSpec
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.output_stream import OpenRequest
from cantata.utils.merge_streams import merge_streams

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Has room for one message; a later one takes the place of one that was not taken. `combined`:
    of the message that was not taken and the later one."""

    def __init__(self, combined: Callable[[T, T], T]) -> None:
        self._combined = combined
        self._message: T | None = None
        self._error: BaseException | None = None
        self._filled = asyncio.Event()

    def put(self, message: T) -> None:
        self._message = message if self._message is None else self._combined(self._message, message)
        self._filled.set()

    def fail(self, error: BaseException) -> None:
        """What was left is still taken; after it, this is raised."""
        self._error = error
        self._filled.set()

    async def take(self) -> T:
        """Wait for a message. Raises BaseException: what `fail` was given."""
        await self._filled.wait()
        message, self._message = self._message, None
        if message is None:
            assert self._error is not None, "filled, and without a message"
            raise self._error
        if self._error is None:
            self._filled.clear()
        return message


@dataclass(frozen=True, slots=True)
class PendingImageEvents:
    """Bounded for whoever reads late: words are kept, progress is replaced by later progress."""

    thought: Thought | None = None
    progress: Progress | None = None
    image: Image | None = None

    @classmethod
    def of(cls, event: DrawingEvent) -> PendingImageEvents:
        match event:
            case Thought():
                return cls(thought=event)
            case Progress():
                return cls(progress=event)
            case Image():
                return cls(image=event)

    def merge(self, later: PendingImageEvents) -> PendingImageEvents:
        """Add later events. The picture itself replaces its progress."""
        thought = self.thought or later.thought
        if self.thought is not None and later.thought is not None:
            thought = self.thought.merge(later.thought)
        if later.image is not None:
            return PendingImageEvents(thought, None, later.image)
        return PendingImageEvents(
            thought, _choose_latest(self.progress, later.progress), self.image
        )

    def events(self) -> Iterator[DrawingEvent]:
        """The events in the order in which they happen."""
        for event in (self.thought, self.progress, self.image):
            if event is not None:
                yield event


def _choose_latest(before: Progress | None, after: Progress | None) -> Progress | None:
    """The later one; a preview stays until there is another."""
    if before is None or after is None:
        return after or before
    return after if after.pixels.size else replace(after, pixels=before.pixels)


async def drain(mailbox: Mailbox[PendingImageEvents]) -> AsyncGenerator[DrawingEvent, None]:
    """Give the events of a mailbox, up to the picture."""
    is_done = False
    while not is_done:
        news = await mailbox.take()
        is_done = news.image is not None
        for event in news.events():
            yield event


class DrawingOutputs:
    """The outputs of one model's pictures."""

    def __init__(self, orchestrator: Orchestrator, builder: ImageBuilder) -> None:
        self._orchestrator = orchestrator
        self._image = EdgeSpec(builder.image, CLIENT)
        self._progress = None if builder.progress is None else EdgeSpec(builder.progress, CLIENT)
        self._thinking = builder if isinstance(builder, ThinkingBuilder) else None

    def before(self, opened: OpenRequest) -> AsyncGenerator[Thought | Progress, None]:
        """Everything before the picture, as it comes."""
        streams: list[AsyncGenerator[Thought | Progress, None]] = []
        if self._progress is not None:
            streams.append(self._iterate_steps(opened, self._progress))
        if self._thinking is not None:
            streams.append(self._iterate_thought(opened, self._thinking))
        return merge_streams(*streams)

    async def image(self, opened: OpenRequest) -> Image:
        return cast(
            Chunk[Image], await anext(self._orchestrator.output(opened, self._image))
        ).payload

    async def _iterate_steps(
        self, opened: OpenRequest, edge: EdgeSpec
    ) -> AsyncGenerator[Thought | Progress, None]:
        async for chunk in self._orchestrator.output(opened, edge):
            yield cast(Chunk[Progress], chunk).payload

    async def _iterate_thought(
        self, opened: OpenRequest, builder: ThinkingBuilder
    ) -> AsyncGenerator[Thought | Progress, None]:
        reader, edge = builder.reader(), EdgeSpec(builder.thought, CLIENT)
        async for chunk in self._orchestrator.output(opened, edge):
            tokens = cast(Chunk[Codes], chunk).payload.values[:, 0]
            text = reader.read(tokens) + (reader.end() if chunk.final else "")
            if len(tokens) or text:
                yield Thought(text, len(tokens))
