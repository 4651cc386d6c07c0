"""All replicas of an edge, which of them has a place, and which gets a request."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import TypeVar

import numpy as np

from cantata.contract.data.request import ReferenceAudio
from cantata.distributed.address import Address, ReplicaDirectory
from cantata.distributed.edge.crash_tracker import ReplicaCrashTracker
from cantata.distributed.edge.peer import Peer
from cantata.distributed.key import LinkKey
from cantata.distributed.link.heartbeat import Heartbeat

R = TypeVar("R")

_FRAMES = 4096
"""At least so many frames of a recording are hashed, if it has them: enough to identify it."""


def choose_least_loaded(free: Mapping[R, int], turn: int) -> R | None:
    """The one with the most free places; None: none has any.

    Args:
        free: places of each, less those that requests on their way will take.
        turn: a count of choices: of several that have equally many, each is chosen in turn.
    """
    most_free = max(free.values(), default=0)
    if most_free <= 0:
        return None
    equals = [replica for replica, places in free.items() if places == most_free]
    return equals[turn % len(equals)]


def choose_by_affinity(free: Mapping[R, int], home: bytes) -> R | None:
    """The one that has probably encoded a recording already; None: none has a free place.

    All edges choose the same one without talking to each other, and when a replica comes or goes,
    only the recordings that it gains or loses move (rendezvous hashing: Thaler and Ravishankar,
    "Using Name-Based Mappings to Increase Hit Rates", 1998). One that has less than half as many
    free places as another is passed over: a popular voice must not fill one replica
    while others idle.

    Args:
        free: as `choose_least_loaded`'s; their text distinguishes replicas.
        home: of `hash_recording`.
    """
    most_free = max(free.values(), default=0)
    able = [replica for replica, places in free.items() if 0 < places >= most_free / 2]
    return max(able, key=lambda replica: _weigh_replica(str(replica), home), default=None)


def hash_recording(recording: ReferenceAudio) -> bytes:
    """What identifies a recording; takes tens of microseconds."""
    samples = recording.samples
    part = np.ascontiguousarray(samples[:: max(1, len(samples) // _FRAMES)])
    shape = f"{samples.shape} {recording.sample_rate}"
    return hashlib.blake2b(part.data, key=shape.encode(), digest_size=16).digest()


def _weigh_replica(replica: str, home: bytes) -> bytes:
    return hashlib.blake2b(replica.encode(), key=home, digest_size=16).digest()


logger = logging.getLogger(__name__)

_ASK_S = 1.0
"""Wait before a directory that failed is queried again."""

Fits = Callable[[Peer], bool]
"""Whether a replica may take a certain order."""


class Replicas:
    """Links to all replicas in a directory. `on_change`: called when what is known about a replica
    has changed."""

    def __init__(
        self, directory: ReplicaDirectory, key: LinkKey, on_change: Callable[[], None]
    ) -> None:
        self._directory, self._key, self._on_change = directory, key, on_change
        self._heartbeat = Heartbeat()
        self.crash_tracker = ReplicaCrashTracker()
        """Requests that killed any of these replicas."""
        self._peers: dict[Address, Peer] = {}
        self._tasks: dict[Address | None, asyncio.Task[None]] = {}
        self._next_change = asyncio.Event()
        self._turn = 0

    @property
    def peers(self) -> list[Peer]:
        """All replicas, connected or not, by address."""
        return [self._peers[address] for address in sorted(self._peers)]

    def start(self) -> None:
        """Watch the directory and connect."""
        self._tasks[None] = asyncio.create_task(self._watch(), name="cantata:watch-replicas")

    async def stop(self) -> None:
        """Close every link."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._heartbeat.close()

    def serving(self, model: str, fits: Fits = lambda peer: True) -> list[Peer]:
        return [peer for peer in self.peers if peer.serves(model) and fits(peer)]

    def best(
        self, model: str, fits: Fits = lambda peer: True, home: bytes | None = None
    ) -> Peer | None:
        """The replica to serve a request; None: none has a free place.

        Args:
            home: of `replicas.hash_recording`, if something must be encoded first. None: the
                one with most free places, in turn if several have.
        """
        free = {peer: peer.free(model) for peer in self.serving(model, fits)}
        if home is not None:
            return choose_by_affinity(free, home)
        best = choose_least_loaded(free, self._turn)
        self._turn += best is not None
        return best

    async def changed(self) -> None:
        """Return when something has changed."""
        await self._next_change.wait()

    def look_again(self) -> None:
        """Wake those who wait: something may have changed."""
        self._next_change.set()
        self._next_change = asyncio.Event()

    async def _watch(self) -> None:
        """A fault of the directory leaves the replicas as they were."""
        while True:
            try:
                async for addresses in self._directory.watch():
                    self._set_addresses(addresses)
                return
            except Exception:
                logger.exception("the directory of replicas failed; next query in %g s", _ASK_S)
                await asyncio.sleep(_ASK_S)

    def _set_addresses(self, addresses: frozenset[Address]) -> None:
        for address in addresses - self._peers.keys():
            peer = self._peers[address] = Peer(
                address,
                self._key,
                self._heartbeat,
                self._noticed,
                self.look_again,
                self.crash_tracker.record_loss,
            )
            self._run(address, peer.keep())
        for address, peer in self._peers.items():
            peer.leaving = address not in addresses
        self._noticed()

    def _run(self, address: Address, work: Coroutine[None, None, None]) -> None:
        self._tasks[address] = asyncio.create_task(work, name=f"cantata:replica:{address}")

    def _noticed(self) -> None:
        for address in [address for address, peer in self._peers.items() if peer.is_done]:
            del self._peers[address]
            self._tasks.pop(address).cancel()
        self._on_change()
        self.look_again()
