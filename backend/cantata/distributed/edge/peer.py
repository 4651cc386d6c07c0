"""One replica, as an edge sees it: its link, what it serves, what it last reported."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from cantata.contract.service import ReplicaReport, StageReport
from cantata.distributed.address import Address
from cantata.distributed.key import LinkKey
from cantata.distributed.link.connecting import connect, reconnect_forever
from cantata.distributed.link.errors import LinkLost, ProtocolError
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.link import Link
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.messages import FrameKind, ModelState, ReplicaState, Reports
from cantata.distributed.model_advertisement import (
    Advertisement,
    AnyCard,
    Card,
    TranscribingModel,
)
from cantata.distributed.serialization import decode, encode

logger = logging.getLogger(__name__)


class Peer:
    """Keeps a link to one replica.

    Args:
        on_change: called when the replica came, went or announced something.
        on_beat: called when it has reported its places.
        on_lost: called when its link is lost, before the requests that wait for it get the error:
            why, and how many requests of other edges it worked on.
    """

    def __init__(
        self,
        address: Address,
        key: LinkKey,
        heartbeat: Heartbeat,
        on_change: Callable[[], None],
        on_beat: Callable[[], None],
        on_lost: Callable[[Peer, LinkLost, int], None],
    ) -> None:
        self.address = address
        self._key, self._heartbeat = key, heartbeat
        self._on_change, self._on_beat, self._on_lost = on_change, on_beat, on_lost
        self._link: Link | None = None
        self._announced: Advertisement | None = None
        self._state = ReplicaState()
        self._sent: Counter[str] = Counter()
        """Live requests on this link, by model."""
        self._routed: Counter[str] = Counter()
        """Orders since the start, by model."""
        self._refused: set[str] = set()
        """Models that had no place after all; until the next state."""
        self._excluded: set[tuple[type[Card], str]] = set()
        """Kinds and names of models of which this one differs from the other replicas'."""
        self._different: set[str] = set()
        """Models that others serve differently."""
        self._lost = 0
        self._trouble: str | None = "not connected yet"
        self.has_spares = True
        """Orders for its spare models are sent."""
        self.leaving = False
        """It is no longer one of the replicas and gets no more requests."""
        self._last_reports: list[StageReport] = []

    def __str__(self) -> str:
        return str(self.address)

    @property
    def is_ready(self) -> bool:
        # WHY: streams hear that the link is lost before this peer's own task does, and would
        # ask it again.
        if self._link is None or self._link.is_lost or self._announced is None:
            return False
        return self._state.ready and not self._state.draining

    @property
    def draining(self) -> bool:
        """Whether the replica finishes its requests and takes no new ones."""
        return self._state.draining

    @property
    def announced(self) -> Advertisement | None:
        """What it serves; None: it is not connected, or not ready yet."""
        return self._announced

    def card(self, kind: type[AnyCard], model: str) -> AnyCard | None:
        """What it announced about a model, if it takes requests of this kind for it."""
        found = (one for one in self._list_cards(model) if isinstance(one, kind))
        return next(found, None)

    def serves(self, model: str) -> bool:
        """Whether it takes requests of any kind for a model."""
        return bool(self._list_cards(model))

    def _list_cards(self, model: str) -> list[Card]:
        if self._announced is None or self.leaving or not self.is_ready:
            return []
        named = (one for one in self._announced.cards if one.name == model)
        return [
            one
            for one in named
            if (type(one), model) not in self._excluded and (self.has_spares or not _is_spare(one))
        ]

    def state(self, model: str) -> ModelState | None:
        """What it last reported about a model, as long as it is connected."""
        return self._state.models.get(model)

    def free(self, model: str) -> int:
        """Places that it has for a model, less those that requests on their way will take."""
        state = self.state(model)
        if state is None or model in self._refused or not self.serves(model):
            return 0
        return state.free - (self._sent[model] - state.ordered)

    def refused(self, model: str) -> None:
        """Note that the replica has no place for a model, whatever it last reported."""
        self._refused.add(model)

    def exclude(self, card: Card, is_excluded: bool) -> None:
        """Whether to send no requests of a card's kind here: its sound has another format."""
        excluded = type(card), card.name
        if is_excluded and excluded not in self._excluded:
            self._excluded.add(excluded)
            self._trouble = f"model {card.name!r} has another sound format than elsewhere"
            logger.error("replica %s: %s", self.address, self._trouble)
        elif not is_excluded:
            self._excluded.discard(excluded)

    def differs(self, card: Card, is_different: bool) -> None:
        """Whether others serve the model from other files, with another deployment or with other
        packages. Warns when that begins."""
        if is_different and card.name not in self._different:
            logger.warning(
                "replica %s: model %r has other files, another deployment or other packages than "
                "elsewhere; requests that are lost there cannot be continued by the others",
                self.address,
                card.name,
            )
        (self._different.add if is_different else self._different.discard)(card.name)

    def send_request(
        self, kind: FrameKind, message: object, model: str, *, live: bool
    ) -> LinkStream:
        """Send a request on a new stream. Raises LinkLost: the replica is gone."""
        stream = self._open(kind, message)
        self._sent[model] += live
        self._routed[model] += 1
        return stream

    def _open(self, kind: FrameKind, message: object) -> LinkStream:
        if self._link is None:
            raise LinkLost(f"{self.address} is not connected")
        stream = self._link.open()
        stream.post(kind, *encode(message))
        return stream

    async def reports(self, timeout_s: float) -> list[StageReport]:
        """Reports of the replica's stages: the last known ones if it does not answer in time."""
        try:
            async with asyncio.timeout(timeout_s):
                stream = self._open(FrameKind.ASK_REPORTS, None)
                try:
                    frame = await stream.receive()
                finally:
                    stream.end()
                await stream.wait_until_ended()
            if frame is not None and frame.kind == FrameKind.REPORTS:
                self._last_reports = list(decode(frame.body, Reports).stages)
        except (TimeoutError, LinkLost):
            pass
        return self._last_reports

    def report(self) -> ReplicaReport:
        return ReplicaReport(
            address=str(self.address),
            ready=self.is_ready,
            draining=self.draining,
            streams=0 if self._link is None else self._link.streams,
            lost=self._lost,
            trouble=self._trouble or self._delay,
            routed=dict(self._routed),
            admissions={name: state.admission for name, state in self._state.models.items()},
        )

    @property
    def _delay(self) -> str | None:
        """Why a connected replica takes no requests."""
        if self.draining:
            return "it is stopping"
        return None if self.is_ready else "its models are loading, or one of its stages is down"

    @property
    def is_done(self) -> bool:
        """Whether the replica has left, and none of this edge's requests is open there."""
        return self.leaving and (self._link is None or not self._link.streams)

    async def keep(self) -> None:
        """Connect, and reconnect whenever the link is lost, until cancelled."""
        await reconnect_forever(self._connect_once, self._on_loss)

    def _on_loss(self, error: LinkLost) -> None:
        if error.reason != self._trouble:
            logger.warning("%s", error.reason)
        self._trouble = error.reason
        self._on_change()

    async def _connect_once(self) -> LinkLost:
        """Connect once; return why the link was lost, once it is. Raises LinkLost: there is no
        link."""
        sock = await connect(self.address, self._key)
        link = self._link = Link(
            sock,
            LinkSide.CONNECTED,
            self._heartbeat,
            f"replica {self.address}",
            on_message=self._hear,
            on_state=self._learn,
            on_lost=self._lose,
        )
        link.begin()
        self._trouble = None
        logger.info("replica %s: connected", self.address)
        try:
            error = await link.wait_until_lost()
            self._lost += 1
            return error
        finally:
            link.close()
            self._link, self._announced, self._state = None, None, ReplicaState()
            self._sent.clear()
            self._refused.clear()
            self._excluded.clear()
            self._last_reports = []

    def _lose(self, error: LinkLost) -> None:
        assert self._link is not None, "its own link calls this"
        running = sum(state.admission.running for state in self._state.models.values())
        self._on_lost(self, error, max(0, running - self._link.streams))

    def _hear(self, kind: int, body: bytearray) -> None:
        if kind != FrameKind.ANNOUNCE:
            raise ProtocolError(f"a frame of kind {kind} arrived on no stream")
        self._announced = decode(body, Advertisement)
        self._on_change()

    def _learn(self, body: bytearray) -> None:
        before, self._state = self.is_ready, decode(body, ReplicaState)
        self._refused.clear()
        if self.leaving or self.is_ready != before:
            self._on_change()
        else:
            self._on_beat()


def _is_spare(card: Card) -> bool:
    return isinstance(card, TranscribingModel) and card.is_spare
