"""The loads of the harness, put on simulated servers in virtual time.

An asyncio loop jumps to the next event instead of waiting for it. So the very objects that serve
(`Admission`, with its queue and its timeouts) run unchanged in a simulation, and an hour of it
takes as long as its events take to compute.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import selectors
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cantata.contract.data.errors import Overloaded
from cantata_bench.listener import Listener, heard_at_s
from cantata_bench.results import ListenedRequest, LoadSpec, LoadSummary
from cantata_bench.simulator.edges import SimulatedEdge
from cantata_bench.simulator.server import SimulatedServer
from cantata_bench.simulator.system import System
from cantata_bench.summary import summarize
from cantata_bench.texts import text_set

R = TypeVar("R")


class _NothingScheduled(RuntimeError):
    """Every task waits for another: a fault of the simulation."""


class _JumpingSelector(selectors.DefaultSelector):
    """Advances the clock by the time that it was to wait."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise _NothingScheduled("the simulation waits for nothing that will happen")
        self.now_s += timeout
        return []


class _VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s


def run_virtually(main: Coroutine[Any, Any, R]) -> R:
    """`asyncio.run` in virtual time, from 0 on; threads and sockets are out of its reach."""
    with asyncio.Runner(loop_factory=_VirtualTimeLoop) as runner:
        return runner.run(main)


_SENTENCE = re.compile(r"[^.!?]+[.!?]*\s*")
_GIVEN_UP_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Prediction:
    spec: LoadSpec
    summary: LoadSummary | None
    """None if nothing is spoken."""
    refused: int
    """Requests that never get in, also where nothing is spoken."""


def simulate(system: System, spec: LoadSpec) -> Prediction:
    """Put one load on the system, in virtual time."""
    return run_virtually(_simulate(system, spec))


async def _simulate(system: System, spec: LoadSpec) -> Prediction:
    servers = [SimulatedServer(system) for _ in range(system.servers)]
    running = [asyncio.create_task(server.run()) for server in servers]
    for server in servers:
        await server.warm_up()
    edges = [SimulatedEdge(servers, system.link_s) for _ in range(system.edges)]
    running += [asyncio.create_task(edge.run()) for edge in edges]
    load = _SimulatedLoad(servers, edges, system, spec)
    await load.run()
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    refused = sum(record.outcome == "refused" for record in load.records)
    throughput_x = load.in_window_s / spec.seconds
    return Prediction(spec, summarize(load.records, throughput_x), refused)


@dataclass(slots=True)
class _SimulatedLoad:
    servers: Sequence[SimulatedServer]
    edges: Sequence[SimulatedEdge]
    system: System
    spec: LoadSpec
    began_s: float = 0.0
    asked: int = 0
    in_window_s: float = 0.0
    records: list[ListenedRequest] = field(default_factory=list)

    @property
    def end_s(self) -> float:
        return self.spec.warm_up_s + self.spec.seconds

    def now_s(self) -> float:
        return asyncio.get_running_loop().time() - self.began_s

    async def run(self) -> None:
        self.began_s = asyncio.get_running_loop().time()
        texts = text_set(self.spec.texts, self.spec.seed)
        dice = random.Random(self.spec.seed)
        async with asyncio.TaskGroup() as group:
            if self.spec.kind != "open":
                for _ in range(self.spec.streams):
                    after_s = dice.uniform(0.0, self.spec.arrive_within_s)
                    group.create_task(self._run_stream(texts, after_s))
                return
            due_s = dice.expovariate(self.spec.rate)
            while due_s < self.end_s:
                await asyncio.sleep(max(0.0, due_s - self.now_s()))
                group.create_task(self._ask(texts))
                due_s += dice.expovariate(self.spec.rate)

    async def _run_stream(self, texts: Sequence[str], after_s: float) -> None:
        await asyncio.sleep(after_s)
        while self.now_s() < self.end_s:
            pause_s = await self._ask(texts)
            await asyncio.sleep(pause_s)

    async def _ask(self, texts: Sequence[str]) -> float:
        """Request one text until it is spoken or given up. Returns the pause after it."""
        text = texts[self.asked % len(texts)]
        self.asked += 1
        refusals = 0
        while True:
            sent_s = self.now_s()
            try:
                return await self._speak(text, sent_s, refusals)
            except Overloaded as refusal:
                refusals += 1
                again = self.spec.honour_retry_after and self.spec.kind != "open"
                told_s = self.spec.retry_s or math.ceil(refusal.retry_after_s)
                wait_s = told_s if again else _GIVEN_UP_PAUSE_S
                if not again or self.now_s() + wait_s > self.end_s:
                    self._take(
                        ListenedRequest(
                            outcome="refused",
                            sent_s=sent_s,
                            characters=len(text),
                            refusals=refusals,
                        )
                    )
                    return wait_s
            await asyncio.sleep(wait_s)

    async def _speak(self, text: str, sent_s: float, refusals: int) -> float:
        arrivals = await self._choose_entry().speak(self._make_frames(text))
        began_s = self.began_s + sent_s
        for at_s, audio_s in arrivals:
            if self.spec.warm_up_s <= at_s - self.began_s < self.end_s:
                self.in_window_s += audio_s
        listener = Listener(header_s=arrivals[0][0] - began_s, onset=(0, 0.0))
        listener.arrivals = [(at_s - began_s, audio_s) for at_s, audio_s in arrivals]
        self._take(listener.record(sent_s, text, refusals))
        if self.spec.kind in ("closed", "open"):
            return 0.0
        return max(0.0, sent_s + heard_at_s(listener.arrivals) - self.now_s())

    def _choose_entry(self) -> SimulatedServer | SimulatedEdge:
        if self.edges:
            return self.edges[self.asked % len(self.edges)]
        return min(self.servers, key=lambda one: one.load)

    def _make_frames(self, text: str) -> list[int]:
        """A model speaks sentence by sentence."""
        frame_characters = self.system.characters_per_s * self.system.frame_period_s
        sentences = _SENTENCE.findall(text)
        return [max(1, math.ceil(len(part) / frame_characters)) for part in sentences]

    def _take(self, record: ListenedRequest) -> None:
        if record.sent_s >= self.spec.counted_from_s:
            self.records.append(record)
