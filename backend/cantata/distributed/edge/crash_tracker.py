"""Finds requests that kill whole replicas, and rejects them from then on.

The rule is that of stages (`scheduling.quarantine`), with what an edge can see of a replica: that
its process is gone, which requests it worked on, and how much of each had arrived. It cannot see
why: a replica that somebody kills looks like one that crashed.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property

from cantata.contract.data.errors import Quarantined
from cantata.distributed.edge.peer import Peer
from cantata.distributed.link.errors import ConnectionClosed, LinkLost, PeerHung
from cantata.distributed.link.stream import LinkStream
from cantata.scheduling.quarantine import Quarantine, SerialRetryQueue, hash_content

logger = logging.getLogger(__name__)

LEEWAY_BYTES = 64 << 10
"""How far apart two losses at the same place may be, in what had arrived: 0.7 s of sound."""
MAX_KEPT = 1024
"""Refusals that are remembered for a model."""


class RequestFingerprint:
    """A request, each time that a client sends it. `content`: by which it is recognized; None: it
    cannot be."""

    def __init__(self, model: str, content: object | None) -> None:
        self.model = model
        self._content = content

    @cached_property
    def digest(self) -> bytes | None:
        """Of model and content. A recording takes milliseconds, so it is not computed before
        something was lost."""
        return None if self._content is None else hash_content(self.model, self._content)


@dataclass(slots=True, eq=False)
class InFlightRequest:
    fingerprint: RequestFingerprint
    peer: Peer
    stream: LinkStream
    blamed: bytes | None = None
    """Its replica was lost, and the request with this digest was the cause."""


class ReplicaCrashTracker:
    """One edge's."""

    def __init__(self) -> None:
        self._quarantine = Quarantine(LEEWAY_BYTES)
        self._serial_retries = SerialRetryQueue()
        self._in_flight: set[InFlightRequest] = set()
        self.quarantined: Counter[str] = Counter()
        """Requests, by model."""

    @asynccontextmanager
    async def admit(self, fingerprint: RequestFingerprint) -> AsyncIterator[None]:
        """Around a request's life: those that were running when a replica was lost start one at a
        time. Raises Quarantined: it has killed two replicas."""
        if not self._quarantine or fingerprint.digest is None:
            yield
            return
        self._quarantine.check(fingerprint.digest)
        if self._quarantine.crash_record(fingerprint.digest) is None:
            yield
            return
        await self._serial_retries.wait(fingerprint)
        try:
            self._quarantine.check(fingerprint.digest)  # it may be quarantined by now
            yield
        finally:
            self._serial_retries.give_back(fingerprint)

    def hold(
        self, fingerprint: RequestFingerprint, peer: Peer, stream: LinkStream
    ) -> InFlightRequest:
        """A replica works on a request, from now on until `leave`."""
        in_flight = InFlightRequest(fingerprint, peer, stream)
        self._in_flight.add(in_flight)
        return in_flight

    def leave(self, in_flight: InFlightRequest, *, complete: bool) -> None:
        """Its replica does not work on it any more."""
        self._in_flight.discard(in_flight)
        if complete and self._quarantine:
            self._clear(in_flight.fingerprint)

    def record_progress(self, in_flight: InFlightRequest) -> None:
        if not self._quarantine or (digest := in_flight.fingerprint.digest) is None:
            return
        if self._quarantine.has_passed(digest, in_flight.stream.arrived_bytes):
            self._clear(in_flight.fingerprint)

    def record_loss(self, peer: Peer, error: LinkLost, others: int) -> None:
        """A replica was lost; called before the requests that wait for it get the error. `others`:
        requests of other edges that it worked on."""
        in_flight = [one for one in self._in_flight if one.peer is peer]
        self._in_flight.difference_update(in_flight)
        if peer.draining or not isinstance(error, ConnectionClosed | PeerHung):
            return  # it left, or its machine or its network is gone
        implicated: dict[bytes, int] = {}
        for one in in_flight:
            if one.fingerprint.digest is None:
                others += 1
                continue
            done = one.stream.arrived_bytes
            implicated[one.fingerprint.digest] = max(
                done, implicated.get(one.fingerprint.digest, 0)
            )
        found = self._quarantine.record_death("replica", implicated, others=others)
        if found is None:
            return
        for one in in_flight:
            one.blamed = found
        model = next(one.fingerprint.model for one in in_flight if one.fingerprint.digest == found)
        self.quarantined[model] += 1
        logger.error("quarantined: a request for model %r has killed two replicas", model)

    def check(self, in_flight: InFlightRequest) -> None:
        """Raises Quarantined if this request has killed its replica."""
        if in_flight.blamed is not None and in_flight.blamed == in_flight.fingerprint.digest:
            raise Quarantined(
                "this request has ended the replica process twice and is rejected from now on",
                "input",
            )

    def _clear(self, fingerprint: RequestFingerprint) -> None:
        if fingerprint.digest is not None:
            self._quarantine.clear(fingerprint.digest)
        self._serial_retries.give_back(fingerprint)


class Refusals:
    """The latest requests for one model that a replica has in quarantine; no other gets them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Quarantined] = OrderedDict()

    def check(self, asked: RequestFingerprint) -> None:
        """Raises Quarantined if a replica has refused this request as quarantined."""
        if not self._kept or asked.digest is None:
            return
        error = self._kept.get(asked.digest)
        if error is not None:
            raise Quarantined(error.message, error.param)

    def add(self, asked: RequestFingerprint, error: Quarantined) -> None:
        """A replica has refused it."""
        if asked.digest is None:
            return
        self._kept[asked.digest] = error
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
