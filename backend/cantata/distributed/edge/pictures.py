"""A model on the replicas that draws, as the API sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Progress
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.image_service import Drawing, DrawingEvent
from cantata.distributed.edge.remote_work import RemoteCall, RemoteWork
from cantata.distributed.edge.replay import ThoughtReplay
from cantata.distributed.edge.served import RemoteServed
from cantata.distributed.messages import DRAWING_EVENTS, DrawingBegun, DrawRequest, FrameKind
from cantata.distributed.model_advertisement import DrawingModel
from cantata.utils.logs import make_work_id


class RemoteImageModel(RemoteServed[DrawingModel]):
    """Implements `contract.image_service.ImageModel`."""

    @property
    def limits(self) -> ImageLimits:
        return self.card.limits

    @property
    def note(self) -> str:
        return self.card.note

    def check_room(self) -> None:
        """Nothing: each replica forecasts for itself, and answers when it gets the request."""

    @asynccontextmanager
    async def run(self, request: ImageRequest) -> AsyncIterator[Drawing]:
        work_id = make_work_id()
        work: RemoteWork[DrawingBegun, DrawingEvent] = self._build_work(
            RemoteCall(
                FrameKind.DRAW,
                lambda: DrawRequest.of(work_id, self.name, request),
                self.name,
                DrawingModel,
                queued=False,
                live=True,
                opened=(FrameKind.DRAWING, DrawingBegun),
                events=DRAWING_EVENTS,
                read=lambda event: cast(DrawingEvent, event),
            ),
            replace(request, deadline_s=None),
            _DrawingReplay(),
        )
        async with self._run_work(work) as (started, events):
            yield Drawing(
                started.request_id,
                (work.route,),
                events,
                width=started.width,
                height=started.height,
                steps=started.steps,
                prompt_tokens=started.prompt_tokens,
                reference_tokens=started.reference_tokens,
            )


class _DrawingReplay:
    """Progress continues where it was, and so do the words of a thought. The same request gives the
    same picture; of another replica's files, it must not be continued."""

    playout_deadline_s = 0.0
    """Nobody hears a picture."""

    def __init__(self) -> None:
        self._step = -1
        self._thought = ThoughtReplay()

    @property
    def is_begun(self) -> bool:
        """A step or a word was shown."""
        return self._step >= 0 or self._thought.is_begun

    def restart(self) -> None:
        self._thought.restart()

    def take(self, event: DrawingEvent) -> DrawingEvent | None:
        """The picture, a later step than any before, or new words. Raises ReplicaLost: the
        repetition's words are not what was thought before."""
        match event:
            case Progress() if event.step <= self._step:
                return None
            case Progress():
                self._step = event.step
            case Thought():
                return self._thought.take(event)
        return event

    def check_end(self) -> None:
        """The picture is over. Raises ReplicaLost: its repetition thought less than what was passed
        on."""
        self._thought.check_end()
