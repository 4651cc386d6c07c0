"""A model on the replicas that answers messages, as the API sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from cantata.contract.chat_service import Answer, AnswerEvent
from cantata.contract.data.chat import AnswerOption, ChatRequest, Modality
from cantata.distributed.chat_messages import EVENTS, Answering, AnswerRequest
from cantata.distributed.edge.remote_work import RemoteCall, RemoteWork
from cantata.distributed.edge.replay import AnswerReplay
from cantata.distributed.edge.served import RemoteVoiced
from cantata.distributed.messages import FrameKind, SoundMessage, to_milestones
from cantata.distributed.model_advertisement import AnsweringModel
from cantata.utils.logs import make_work_id


class RemoteChatModel(RemoteVoiced[AnsweringModel]):
    """Implements `contract.chat_service.ChatModel`."""

    @property
    def takes(self) -> frozenset[Modality]:
        return self.card.takes

    @property
    def calls_tools(self) -> bool:
        return self.card.calls_tools

    @property
    def thinks(self) -> bool:
        return self.card.thinks

    @property
    def options(self) -> frozenset[AnswerOption]:
        return self.card.options

    @property
    def spoken_by(self) -> str | None:
        """As the replica's deployment says."""
        return self.card.spoken_by

    @asynccontextmanager
    async def run(self, request: ChatRequest) -> AsyncIterator[Answer]:
        message = AnswerRequest.of(make_work_id(), self.name, request)
        work: RemoteWork[Answering, AnswerEvent] = self._build_work(
            RemoteCall(
                FrameKind.ANSWER,
                lambda: message,
                self.name,
                AnsweringModel,
                queued=not request.batch,
                live=not request.batch,
                opened=(FrameKind.ANSWERING, Answering),
                events=EVENTS,
                read=_to_event,
            ),
            replace(request, batch=False),
            AnswerReplay(self.sample_rate),
        )
        async with self._run_work(work) as (started, events):
            milestones = (work.route, *to_milestones(started.milestones))
            yield Answer(
                started.request_id, milestones, events, prompt_tokens=started.prompt_tokens
            )


def _to_event(message: Any) -> AnswerEvent:
    return message.chunk if isinstance(message, SoundMessage) else message
