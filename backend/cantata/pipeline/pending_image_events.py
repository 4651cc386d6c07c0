"""Events of a picture that its caller has not read yet."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, replace

from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Image, Progress
from cantata.contract.image_service import DrawingEvent
from cantata.pipeline.mailbox import Mailbox


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
        """With what happened later. The picture itself takes the place of its progress."""
        thought = self.thought or later.thought
        if self.thought is not None and later.thought is not None:
            thought = self.thought.merge(later.thought)
        if later.image is not None:
            return PendingImageEvents(thought, None, later.image)
        return PendingImageEvents(thought, _latest(self.progress, later.progress), self.image)

    def events(self) -> Iterator[DrawingEvent]:
        """The events in the order in which they happen."""
        for event in (self.thought, self.progress, self.image):
            if event is not None:
                yield event


def _latest(before: Progress | None, after: Progress | None) -> Progress | None:
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
