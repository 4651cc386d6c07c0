"""Edges before simulated replicas: they pick by free places, as they were told over a link.

`choose_least_loaded` is the production code. Around it, as there: a replica tells its places with
every heartbeat and change, an edge subtracts the orders that it does not know of yet, a replica
without a place refuses, and who gets none waits at the edge.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from cantata.contract.data.errors import Overloaded
from cantata.distributed.edge.replicas import choose_least_loaded
from cantata.distributed.edge.waiting import MAX_WAIT_S
from cantata.distributed.link.heartbeat import BEAT_S
from cantata_bench.listener import Arrival
from cantata_bench.simulator.server import SimulatedServer


@dataclass(slots=True)
class _View:
    """An edge's view of one replica."""

    server: SimulatedServer
    open: int = 0
    """Orders of this edge there."""
    told_free: int = 0
    told_open: int = 0
    """Orders of this edge that it knew of."""

    @property
    def free(self) -> int:
        return self.told_free - (self.open - self.told_open)


class SimulatedEdge:
    """Takes requests for all replicas.

    Args:
        servers: the replicas.
        link_s: one way.
    """

    def __init__(self, servers: Sequence[SimulatedServer], link_s: float) -> None:
        self._link_s = link_s
        self._views = [_View(server) for server in servers]
        self._line: deque[object] = deque()
        self._change = asyncio.Event()
        self._turn = 0
        self._clock = asyncio.get_running_loop().time
        for view in self._views:
            view.server.on_change(partial(self._notify, view))

    async def run(self) -> None:
        """Replicas tell their places at every beat, too."""
        while True:
            for view in self._views:
                self._notify(view)
            await asyncio.sleep(BEAT_S)

    async def speak(self, sentences: Sequence[int]) -> list[Arrival]:
        """Speak one request, like `SimulatedServer.speak`.

        Raises:
            Overloaded: no place became free in time.
        """
        until_s = self._clock() + MAX_WAIT_S
        while True:
            view = await self._find_place(until_s - self._clock())
            with _count_held(view):
                await asyncio.sleep(self._link_s)
                if not view.server.free:
                    view.told_free = 0
                    continue
                arrivals = await view.server.speak(sentences)
            return [(at_s + self._link_s, audio_s) for at_s, audio_s in arrivals]

    async def _find_place(self, wait_s: float) -> _View:
        slots = sum(view.server.slots for view in self._views)
        if len(self._line) >= slots:
            raise Overloaded("as many wait as there are slots")
        turn = object()
        self._line.append(turn)
        try:
            async with asyncio.timeout(wait_s):
                while (best := self._find_best()) is None or self._line[0] is not turn:
                    await self._change.wait()
                return best
        except TimeoutError:
            raise Overloaded("no place became free in time") from None
        finally:
            self._line.remove(turn)
            self._look_again()

    def _find_best(self) -> _View | None:
        number = choose_least_loaded(
            {n: view.free for n, view in enumerate(self._views)}, self._turn
        )
        self._turn += number is not None
        return None if number is None else self._views[number]

    def _notify(self, view: _View) -> None:
        """Send the replica's present state, which arrives later."""
        free, open_there = view.server.free, view.open
        asyncio.get_running_loop().call_later(self._link_s, self._hear, view, free, open_there)

    def _hear(self, view: _View, free: int, open_there: int) -> None:
        view.told_free, view.told_open = free, open_there
        self._look_again()

    def _look_again(self) -> None:
        self._change.set()
        self._change = asyncio.Event()


@contextmanager
def _count_held(view: _View) -> Iterator[None]:
    view.open += 1
    try:
        yield
    finally:
        view.open -= 1
