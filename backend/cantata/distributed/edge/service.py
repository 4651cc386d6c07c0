"""The models of replicas, behind the interface that the API uses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from cantata.contract.catalogue import Catalogue
from cantata.contract.service import ReplicaReport, StageReport
from cantata.distributed.address import ReplicaDirectory
from cantata.distributed.edge.chat import RemoteChatModel
from cantata.distributed.edge.peer import Peer
from cantata.distributed.edge.pictures import RemoteImageModel
from cantata.distributed.edge.replicas import Replicas
from cantata.distributed.edge.served import A, RemoteServed
from cantata.distributed.edge.speech import RemoteSpeechModel
from cantata.distributed.edge.transcription import RemoteTranscriptionModel
from cantata.distributed.edge.waiting import Waiting
from cantata.distributed.key import LinkKey
from cantata.distributed.model_advertisement import Card, compatible, get_format

REPORT_DEADLINE_S = 0.7
"""A replica waits half a second for its own stages."""


M = TypeVar("M", bound=RemoteServed[Any])


class RemoteService(
    Catalogue[RemoteSpeechModel, RemoteChatModel, RemoteImageModel, RemoteTranscriptionModel]
):
    """Implements `contract.transcription_service.TranscriptionService` over replicas. `key`: which
    the replicas have, too."""

    def __init__(self, directory: ReplicaDirectory, key: LinkKey) -> None:
        self._speaking: dict[str, RemoteSpeechModel] = {}
        self._answering: dict[str, RemoteChatModel] = {}
        self._drawing: dict[str, RemoteImageModel] = {}
        self._transcribing: dict[str, RemoteTranscriptionModel] = {}
        kinds = self._speaking, self._answering, self._drawing, self._transcribing
        super().__init__(*kinds, default_model="")
        self._has_listener = False
        """Some replica was told to serve a model that transcribes."""
        self._queues: dict[str, Waiting] = {}
        """By model: what it does for one request takes a place from every other."""
        self._replicas = Replicas(directory, key, self._learn)

    @property
    def ready(self) -> bool:
        """Whether some replica takes requests for each model, and for all that it does."""
        return bool(self._cards) and not self._missing

    @property
    def trouble(self) -> str:
        which = f"model {', '.join(self._missing)}" if self._missing else "any model"
        reports = self.get_replica_reports()
        states = [f"{one.address}: {one.trouble}" for one in reports if one.trouble is not None]
        return "; ".join([f"no replica takes requests for {which}", *states])

    @property
    def _cards(self) -> list[Card]:
        models = self._speaking, self._answering, self._drawing, self._transcribing
        return [model.card for kind in models for model in kind.values()]

    @property
    def _missing(self) -> list[str]:
        """Models for which, or for some part of which, no replica takes requests."""
        peers = self._replicas.peers
        missing = (
            card.name
            for card in self._cards
            if all(peer.card(type(card), card.name) is None for peer in peers)
        )
        return list(dict.fromkeys(missing))

    @property
    def waiting(self) -> Mapping[str, int]:
        """Requests in this edge's own queues, which no replica counts, by model."""
        return {name: len(queue) for name, queue in self._queues.items()}

    async def start(self) -> None:
        """Connect; return when there is a replica for every known model."""
        self._replicas.start()
        while not self.ready:
            await self._replicas.changed()

    async def stop(self) -> None:
        """Close every link, which ends what the replicas speak for this server."""
        await self._replicas.stop()

    async def collect_stage_reports(self) -> list[StageReport]:
        peers = self._replicas.peers
        reports = await asyncio.gather(*(peer.reports(REPORT_DEADLINE_S) for peer in peers))
        return [
            replace(report, replica=str(peer.address))
            for peer, stages in zip(peers, reports, strict=True)
            for report in stages
        ]

    def get_replica_reports(self) -> list[ReplicaReport]:
        return [peer.report() for peer in self._replicas.peers]

    def _learn(self) -> None:
        """Take over what replicas announce."""
        announced = [one.announced for one in self._replicas.peers if one.announced is not None]
        named = (not card.is_spare for one in announced for card in one.transcribing)
        self._has_listener = self._has_listener or any(named)
        if self._has_listener:
            self._leave_spares_aside()
        for peer in self._replicas.peers:
            if peer.announced is None:
                continue
            self.default_model = self.default_model or peer.announced.default_model
            for speaking in peer.announced.speaking:
                self._take(peer, speaking, self._speaking, RemoteSpeechModel)
            for answering in peer.announced.answering:
                self._take(peer, answering, self._answering, RemoteChatModel)
            for drawing in peer.announced.drawing:
                self._take(peer, drawing, self._drawing, RemoteImageModel)
            for card in peer.announced.transcribing:
                if not (card.is_spare and self._has_listener):
                    self._take(peer, card, self._transcribing, RemoteTranscriptionModel)

    def _leave_spares_aside(self) -> None:
        """Also while the replica is away whose model was named: another one would know other
        languages."""
        for peer in self._replicas.peers:
            peer.has_spares = False
        for name, model in list(self._transcribing.items()):
            if model.card.is_spare:
                del self._transcribing[name]

    def _take(
        self, peer: Peer, card: A, known: dict[str, M], make: Callable[[Replicas, Waiting, A], M]
    ) -> None:
        """What clients were told about a model stays true while any replica serves it like that."""
        model = known.get(card.name)
        if model is None:
            queue = self._queues.setdefault(card.name, Waiting(self._replicas, card.name))
            known[card.name] = make(self._replicas, queue, card)
            return
        same = get_format(card) == get_format(model.card)
        peers = self._replicas.peers
        others = (one.card(type(card), card.name) for one in peers if one is not peer)
        if not any(other is not None and compatible(other, model.card) for other in others):
            model.card = card
            same = True
        peer.exclude(card, not same)
        self._compare(peer, card)

    def _compare(self, peer: Peer, card: Card) -> None:
        """Warn of a replica whose answers may differ from those of others: it serves requests of
        its own, as a rolling upgrade needs, but never continues theirs."""
        kind = type(card)
        others = (one.card(kind, card.name) for one in self._replicas.peers if one is not peer)
        peer.differs(card, any(one is not None and one.identity != card.identity for one in others))
