"""The messages of edges and replicas about pictures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Image, Progress
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.image_service import DrawingEvent
from cantata.distributed.messages import FrameKind


@dataclass(frozen=True, slots=True)
class DrawOrder:
    """A picture to be drawn."""

    work_id: str
    model: str
    options: ImageRequest
    """Without a deadline."""
    waits_s: float | None = None
    """How much longer its caller waits."""

    @classmethod
    def of(cls, work_id: str, model: str, request: ImageRequest) -> DrawOrder:
        """As it is sent now."""
        waits_s = None if request.deadline_s is None else request.deadline_s - time.monotonic()
        return cls(work_id, model, replace(request, deadline_s=None), waits_s)

    @property
    def request(self) -> ImageRequest:
        """As it has just arrived."""
        if self.waits_s is None:
            return self.options
        return replace(self.options, deadline_s=time.monotonic() + self.waits_s)


@dataclass(frozen=True, slots=True)
class DrawingBegun:
    """The work was admitted; fields as of `Drawing`."""

    request_id: str
    width: int
    height: int
    steps: int
    prompt_tokens: int
    reference_tokens: int


EVENTS: Mapping[int, type[DrawingEvent]] = {
    FrameKind.THOUGHT: Thought,
    FrameKind.PROGRESS: Progress,
    FrameKind.IMAGE: Image,
}


def get_kind(event: DrawingEvent) -> FrameKind:
    """Under which it is sent."""
    return next(FrameKind(kind) for kind, one in EVENTS.items() if isinstance(event, one))
