"""A model on the replicas that speaks, as the API sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

from cantata.contract.catalogue import find_voice
from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import ReferenceAudio, SpeechRequest, Voice
from cantata.contract.service import SpeechChunk, Utterance
from cantata.distributed.edge.remote_work import RemoteCall, RemoteWork
from cantata.distributed.edge.replay import ReplayDeduplicator
from cantata.distributed.edge.replayable_input import ReplayableText
from cantata.distributed.edge.replicas import hash_recording
from cantata.distributed.edge.served import RemoteVoiced
from cantata.distributed.messages import (
    FrameKind,
    Opened,
    SoundMessage,
    SpeakRequest,
    to_milestones,
)
from cantata.distributed.model_advertisement import SpeakingModel
from cantata.utils.logs import make_work_id


class RemoteSpeechModel(RemoteVoiced[SpeakingModel]):
    """Implements `contract.service.SpeechModel`."""

    @property
    def max_input_characters(self) -> int:
        return self.card.max_input_characters

    @property
    def sampled(self) -> bool:
        return self.card.sampled

    @property
    def capabilities(self) -> Capabilities:
        return self.card.capabilities

    def get_voice(self, name: str | None) -> Voice:
        blends = self.capabilities.voice_blends
        return find_voice(self.voices, name, self.name, blends=blends)

    async def phonemize(self, text: str, language: str) -> str:
        """Not over a link. Raises InvalidRequest: always."""
        raise InvalidRequest(
            f"model {self.name!r} runs on replicas: ask a server that runs it itself", "model"
        )

    async def may_be_same_speaker(
        self, first: ReferenceAudio, second: ReferenceAudio
    ) -> bool | None:
        """Not over a link."""
        return None

    @asynccontextmanager
    async def run(
        self, request: SpeechRequest, *, more_text: AsyncIterator[str] | None = None
    ) -> AsyncIterator[Utterance]:
        """Speak a text on a replica. Raises ChunkTimeout: the beginning of a text that arrives in
        pieces came too late."""
        text = None if more_text is None else ReplayableText(more_text)
        work = self._work(request, text)
        try:
            if text is not None:
                await text.wait_for_text(request.text)
            async with self._run_work(work) as (opened, chunks):
                milestones = (work.route, *to_milestones(opened.milestones))
                yield Utterance(opened.request_id, milestones, chunks)
        finally:
            if text is not None:
                await text.close()

    def _work(
        self, request: SpeechRequest, text: ReplayableText | None
    ) -> RemoteWork[Opened, SpeechChunk]:
        message = SpeakRequest.of(make_work_id(), self.name, request, open_text=text is not None)
        replay = ReplayDeduplicator(self.sample_rate)
        call = RemoteCall(
            FrameKind.SPEAK,
            lambda: replace(message, repeated=replay.is_begun),
            self.name,
            SpeakingModel,
            queued=not request.batch,
            live=not request.batch,
            opened=(FrameKind.OPENED, Opened),
            events={FrameKind.SOUND: SoundMessage},
            read=lambda sound: cast(SoundMessage, sound).chunk,
            home=None if request.reference is None else hash_recording(request.reference),
        )
        if text is None:
            return self._build_work(call, replace(request, batch=False), replay)
        return self._build_work(call, None, replay, text.send_on)
