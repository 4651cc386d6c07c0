"""Work that a replica does, or a second one after the first was lost."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from cantata.contract.data.chunks import Milestone
from cantata.contract.data.errors import Overloaded, ReplicaLost, StageDied
from cantata.contract.data.faults import Fault, to_error
from cantata.distributed.edge.crash_tracker import (
    InFlightRequest,
    ReplicaCrashTracker,
    RequestFingerprint,
)
from cantata.distributed.edge.peer import Peer
from cantata.distributed.edge.waiting import MAX_WAIT_S, Waiting
from cantata.distributed.link.errors import HeartbeatTimeout, LinkLost, PeerHung, ProtocolError
from cantata.distributed.link.frames import END
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.messages import FrameKind
from cantata.distributed.model_advertisement import Card
from cantata.distributed.serialization import decode

logger = logging.getLogger(__name__)

O = TypeVar("O")  # noqa: E741
E = TypeVar("E")

ROUTE = "route"
"""Milestone: a replica was chosen."""
AGAIN_S = 0.3
"""Limit for finding a replica that starts again, for listeners who have nothing left to play: a
loss is noticed within 1.6 s, and they get an error within 2 s if no replica takes over."""
PLACE_S = 1.9
"""The same if the loss was noticed at once, and another replica may soon have a place."""
FREE_S = 10.0
"""Limit for a replica to free what is left before its end."""


@dataclass(frozen=True, slots=True)
class RemoteCall(Generic[O, E]):
    """What is asked for, and the messages that answer it."""

    kind: FrameKind
    body: Callable[[], object]
    """As it is sent now."""
    model: str
    card: type[Card]
    """Of the replica's cards with this name, what the call is for."""
    queued: bool
    """It waits here for a free place; otherwise a replica decides at once, and says when to try
    again if it refuses."""
    live: bool
    """It takes one of the places that a replica reports."""
    opened: tuple[FrameKind, type[O]]
    """The first answer."""
    events: Mapping[int, type[Any]]
    """Those that follow, by kind."""
    read: Callable[[Any], E]
    """An event as it has just arrived."""
    home: bytes | None = None
    """Of `replicas.hash_recording`, if a replica encodes something for it."""


class Replay(Protocol[E]):
    """How much of some work was passed on, so that its repetition gives each part once."""

    @property
    def is_begun(self) -> bool:
        """Whether anything was passed on."""
        ...

    @property
    def playout_deadline_s(self) -> float:
        """When a listener will have played what was passed on, by the monotonic clock; 0: nothing
        is heard."""
        ...

    def restart(self) -> None:
        """Expect the repetition from now on: `take` gets it from its beginning."""
        ...

    def take(self, event: E) -> E | None:
        """The new part of an event; None if nothing in it is new. Raises ReplicaLost: the
        repetition is not what was made before."""
        ...

    def check_end(self) -> None:
        """The work is over. Raises ReplicaLost: its repetition is shorter than what was passed
        on."""
        ...


class RemoteWork(Generic[O, E]):
    """Its life on replicas: `open`, then `events`, then `close`.

    Args:
        call: the same for each of them.
        asked: what identifies the request when it comes again.
        on_stream: called with each stream on which it is sent.
    """

    def __init__(
        self,
        call: RemoteCall[O, E],
        asked: RequestFingerprint,
        crash_tracker: ReplicaCrashTracker,
        waiting: Waiting,
        replay: Replay[E],
        on_stream: Callable[[LinkStream], None] = lambda stream: None,
    ) -> None:
        self._call, self._waiting, self._replay = call, waiting, replay
        self.asked, self._crash_tracker = asked, crash_tracker
        self._on_stream = on_stream
        self._held: InFlightRequest | None = None
        """What it counts as at the replica that does the work."""
        self._identity = ""
        """Of the model there."""
        self._stream: LinkStream | None = None
        self._routed_at = 0.0
        self._again = False
        """It was repeated after an unexplained loss."""
        self._failed: set[Peer] = set()
        """Replicas that could not take it."""

    @property
    def route(self) -> Milestone:
        """Once open: when the replica was chosen."""
        return Milestone(ROUTE, self._routed_at)

    async def open(self) -> O:
        """Order it from a replica that has a place; its first answer.

        Raises:
            Overloaded: no replica has a place in time.
            StageDied: no replica serves the model, or (`ReplicaLost`) two were lost.
            InvalidRequest: it cannot be served.
            Quarantined: it has killed a second replica.
        """
        again = False
        while True:
            try:
                return await self._open_call(again=again)
            except LinkLost as error:
                self._count(error)
                again = True  # nothing of it was passed on, so it may wait for a place

    async def events(self) -> AsyncGenerator[E, None]:
        """What the replica makes, each part once.

        Raises:
            ReplicaLost: its replica was lost, and no other one could continue.
            Quarantined: it has killed a second replica.
            CantataError: as of the replica's own work.
        """
        while True:
            try:
                while (message := await self._receive(self._call.events)) is not None:
                    self._on_progress()
                    if (new := self._replay.take(self._call.read(message))) is not None:
                        yield new
                self._replay.check_end()
                self._leave(complete=True)
                return
            except LinkLost as error:
                await self._reopen_call(error)

    async def close(self) -> None:
        """Leave; returns when the replica has freed it, or is lost."""
        self._leave(complete=False)
        if self._stream is None:
            return
        self._stream.end()
        try:
            async with asyncio.timeout(FREE_S):
                await self._stream.wait_until_ended()
        except TimeoutError:
            logger.error("a replica did not free a request within %g s", FREE_S)

    async def _open_call(self, *, again: bool = False) -> O:
        """Order it, from the next replica if one has no place after all.

        Args:
            again: ahead of the requests that wait.

        Raises:
            LinkLost: the replica was lost before it answered.
        """
        deadline_s = time.monotonic() + MAX_WAIT_S
        refusals: list[Overloaded] = []
        while True:
            left_s = max(0.0, deadline_s - time.monotonic())
            queued, again = self._call.queued, again or bool(refusals)
            try:
                peer = await self._waiting.place(
                    self._fits, self._call.home, left_s, queued=queued, again=again
                )
            except StageDied:
                if refusals:
                    raise min(refusals, key=lambda one: one.retry_after_s) from None
                raise
            try:
                return await self._place_call(peer)
            except Overloaded as refusal:
                refusals.append(refusal)
                peer.refused(self._call.model)
                if not queued:
                    self._failed.add(peer)
            except StageDied:
                # Nothing of it has run: the replica is stopping, or starts a stage again.
                self._failed.add(peer)

    async def _reopen_call(self, loss: LinkLost) -> O:
        """Order it again.

        Raises:
            ReplicaLost: it was repeated already, or no other replica can take over in time.
            Quarantined: it has killed a second replica.
        """
        self._count(loss)
        deadline_s = time.monotonic() + self._limit_retry_s(loss)
        while True:
            left_s = max(0.0, deadline_s - time.monotonic())
            queued = self._call.queued
            peer = await self._waiting.next_place(
                self._fits, self._call.home, left_s, queued=queued
            )
            if peer is None:
                raise ReplicaLost(f"{loss.reason}; no other replica could go on") from loss
            self._replay.restart()
            try:
                return await self._place_call(peer)
            except Overloaded:
                peer.refused(self._call.model)
                if not queued:
                    self._failed.add(peer)
            except StageDied:
                self._failed.add(peer)
            except LinkLost as error:
                self._count(error)
                loss, deadline_s = error, time.monotonic() + self._limit_retry_s(error)

    def _limit_retry_s(self, loss: LinkLost) -> float:
        """For how long a listener may wait for another replica: while there is sound to play, a
        wait is not heard."""
        is_late = isinstance(loss, HeartbeatTimeout | PeerHung)
        min_s = AGAIN_S if is_late or not self._waiting.is_served(self._fits) else PLACE_S
        buffered_s = self._replay.playout_deadline_s - time.monotonic()
        return max(min_s, min(buffered_s, MAX_WAIT_S))

    def _count(self, loss: LinkLost) -> None:
        """Its replica was lost: each request that is not the cause may continue, but only once
        after an unexplained loss.

        Raises:
            ReplicaLost: this is not the first such loss.
            Quarantined: it has killed its replica, and one before.
        """
        held, self._held = self._held, None
        if held is not None:
            self._crash_tracker.check(held)
            self._failed.add(held.peer)
            if held.blamed is not None:
                return
        if self._again:
            raise ReplicaLost(f"the second replica was lost, too: {loss.reason}") from loss
        self._again = True

    def _on_progress(self) -> None:
        if self._held is not None:
            self._crash_tracker.record_progress(self._held)

    def _leave(self, *, complete: bool) -> None:
        if self._held is not None:
            self._crash_tracker.leave(self._held, complete=complete)
            self._held = None

    def _fits(self, peer: Peer) -> bool:
        """Whether a replica may take it: it must also make what was passed on already."""
        card = None if peer in self._failed else self._find_card(peer)
        if card is None:
            return False
        return not self._replay.is_begun or card.identity == self._identity

    def _find_card(self, peer: Peer) -> Card | None:
        return peer.card(self._call.card, self._call.model)

    async def _place_call(self, peer: Peer) -> O:
        call, card = self._call, self._find_card(peer)
        assert card is not None, "it was chosen because it serves the model"
        self._routed_at = time.monotonic()
        self._leave(complete=False)
        self._stream = peer.send_request(call.kind, call.body(), call.model, live=call.live)
        self._held = self._crash_tracker.hold(self.asked, peer, self._stream)
        self._on_stream(self._stream)
        kind, opened = call.opened
        answer: O | None = await self._receive({kind: opened})
        if answer is None:
            error = ProtocolError(f"{peer.address} ended a request that it had not opened")
            raise self._stream.reject(error)
        self._identity = card.identity
        return answer

    async def _receive(self, kinds: Mapping[int, type[Any]]) -> Any:
        """The next message, one of these kinds; None: the work is done.

        Raises:
            CantataError: the failure that the replica reports.
            LinkLost: the replica is lost, or sent something else.
        """
        stream = self._stream
        assert stream is not None, "open comes first"
        frame = await stream.receive()
        if frame is None:
            return None
        try:
            if frame.kind == END:
                self._leave(complete=False)  # else its replica's loss would be held against it
                stream.end()
                raise to_error(decode(frame.body, Fault))
            if frame.kind not in kinds:
                raise ProtocolError(f"a frame of kind {frame.kind} arrived out of turn")
            return decode(frame.body, kinds[frame.kind])
        except ProtocolError as error:
            raise stream.reject(error) from None
