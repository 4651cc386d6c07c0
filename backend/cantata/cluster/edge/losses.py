"""Finds requests that kill whole replicas, and rejects them from then on.

The rule is that of stages (`scheduling.quarantine`), with what an edge can see of a replica: that
its process is gone, which requests it worked on, and how much of each had arrived. It cannot see
why: a replica that somebody kills looks like one that crashed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property

from cantata.cluster.edge.peer import Peer
from cantata.cluster.link.errors import Gone, Hung, LinkLost
from cantata.cluster.link.stream import Stream
from cantata.contract.data.errors import Quarantined
from cantata.scheduling.quarantine import Quarantine, Turns, digest_of

logger = logging.getLogger(__name__)

LEEWAY_BYTES = 64 << 10
"""How far apart two losses at the same place may be, in what had arrived: 0.7 s of sound."""


class Asked:
    """A request, each time that a client sends it.

    Args:
        model: that is to serve it.
        content: by which it is recognised; None: it cannot be.
    """

    def __init__(self, model: str, content: object | None) -> None:
        self.model = model
        self._content = content

    @cached_property
    def digest(self) -> bytes | None:
        """Of model and content. A recording takes milliseconds, so it is not computed before
        something was lost."""
        return None if self._content is None else digest_of(self.model, self._content)


@dataclass(slots=True, eq=False)
class Held:
    """A request that a replica works on."""

    asked: Asked
    peer: Peer
    stream: Stream
    blamed: bytes | None = None
    """Its replica was lost, and the request with this digest was the cause."""


class Losses:
    """One edge's."""

    def __init__(self) -> None:
        self._quarantine = Quarantine(LEEWAY_BYTES)
        self._turns = Turns()
        self._held: set[Held] = set()
        self.quarantined: Counter[str] = Counter()
        """Requests, by model."""

    @asynccontextmanager
    async def admit(self, asked: Asked) -> AsyncIterator[None]:
        """Around a request's life: those that were running when a replica was lost start one at a
        time.

        Raises:
            Quarantined: it has killed two replicas.
        """
        if not self._quarantine or asked.digest is None:
            yield
            return
        self._quarantine.check(asked.digest)
        if self._quarantine.strike(asked.digest) is None:
            yield
            return
        await self._turns.wait(asked)
        try:
            self._quarantine.check(asked.digest)  # it may be quarantined by now
            yield
        finally:
            self._turns.give_back(asked)

    def hold(self, asked: Asked, peer: Peer, stream: Stream) -> Held:
        """A replica works on a request, from now on until `leave`."""
        held = Held(asked, peer, stream)
        self._held.add(held)
        return held

    def leave(self, held: Held, *, complete: bool) -> None:
        """Its replica does not work on it any more."""
        self._held.discard(held)
        if complete and self._quarantine:
            self._clear(held.asked)

    def progressed(self, held: Held) -> None:
        """More of it has arrived."""
        if not self._quarantine or (digest := held.asked.digest) is None:
            return
        if self._quarantine.has_passed(digest, held.stream.arrived_bytes):
            self._clear(held.asked)

    def lost(self, peer: Peer, error: LinkLost, others: int) -> None:
        """A replica was lost; called before the requests that wait for it get the error.

        Args:
            peer: the replica.
            error: how.
            others: requests of other edges that it worked on.
        """
        held = [one for one in self._held if one.peer is peer]
        self._held.difference_update(held)
        if peer.draining or not isinstance(error, Gone | Hung):
            return  # it left, or its machine or its network is gone
        suspects: dict[bytes, int] = {}
        for one in held:
            if one.asked.digest is None:
                others += 1
                continue
            done = one.stream.arrived_bytes
            suspects[one.asked.digest] = max(done, suspects.get(one.asked.digest, 0))
        found = self._quarantine.died("replica", suspects, others=others)
        if found is None:
            return
        for one in held:
            one.blamed = found
        model = next(one.asked.model for one in held if one.asked.digest == found)
        self.quarantined[model] += 1
        logger.error("quarantined: a request for model %r has killed two replicas", model)

    def check(self, held: Held) -> None:
        """Raises Quarantined if this request has killed its replica."""
        if held.blamed is not None and held.blamed == held.asked.digest:
            raise Quarantined(
                "this request has ended the replica process twice and is rejected from now on",
                "input",
            )

    def _clear(self, asked: Asked) -> None:
        if asked.digest is not None:
            self._quarantine.clear(asked.digest)
        self._turns.give_back(asked)
