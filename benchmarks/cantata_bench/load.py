"""Puts a load on a server: closed and live loops, and open loads.

Runs in a process of its own (`measured_load`), so that the client's work is never counted as the
server's, and notes how late its own event loop is.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from cantata_bench.client import (
    Connections,
    NoRoom,
    RequestFault,
    Speaker,
    Target,
    open_speaker,
)
from cantata_bench.listener import Listener, heard_at_s
from cantata_bench.results import ClientHealth, ListenedRequest, LoadSpec
from cantata_bench.texts import text_set, varied_text


def speak_long(target: Target, minutes: float, seed: int) -> ListenedRequest:
    """Speak it over the WebSocket, in a process of its own.

    Raises:
        RequestFault: the server could not.
        Refused: the server is at capacity.
    """
    return asyncio.run(_speak(target, varied_text(minutes, seed)))


async def _speak(target: Target, text: str) -> ListenedRequest:
    listener = Listener()
    async with open_speaker(target, "websocket", 0) as speaker:
        await speaker.speak(text, listener, lambda audio_s: None)
    return listener.record(0.0, text, refusals=0)


CountErrors = Callable[[str, bytes, int], tuple[int, float]]
"""Text, mono s16le sound, Hz -> words, and how many of them were not understood."""

BEHIND_S = 0.01
"""A client that wakes up this late (99th percentile) measures itself."""
_LAG_PROBE_S = 0.01
_GIVEN_UP_PAUSE_S = 0.1
"""Pause of a stream that ignores retry-after: a client that retried at once would be a load of its
own."""


@dataclass(frozen=True, slots=True)
class ClientReport:
    """The result of the client process."""

    records: list[ListenedRequest]
    """Records of the requests that were sent after the warm-up."""
    audio_in_window_s: float
    """Sound that arrived between the warm-up and the load's end."""
    audio_s: float
    packets: int
    wall_s: float
    health: ClientHealth


@dataclass(slots=True)
class _Tally:
    """Records what arrives, by the load's clock."""

    began: float
    window: tuple[float, float]
    counted_from_s: float
    in_window_s: float = 0.0
    audio_s: float = 0.0
    packets: int = 0
    records: list[ListenedRequest] = field(default_factory=list)

    def now_s(self) -> float:
        return time.perf_counter() - self.began

    def arrived(self, audio_s: float) -> None:
        self.packets += 1
        self.audio_s += audio_s
        if self.window[0] <= self.now_s() < self.window[1]:
            self.in_window_s += audio_s

    def take(self, record: ListenedRequest) -> None:
        if record.sent_s >= self.counted_from_s:
            self.records.append(record)


def measured_load(spec: LoadSpec, target: Target, asr: bool) -> ClientReport:
    """Run one load to its end."""
    if not asr:
        return asyncio.run(_measure(spec, target, None))
    from cantata_bench.asr import count_errors  # an extra that other loads do without

    return asyncio.run(_measure(spec, target, count_errors))


async def _measure(
    spec: LoadSpec, target: Target, count_errors: CountErrors | None
) -> ClientReport:
    load = _Load(spec, target, count_errors)
    lags: list[float] = []
    probing = asyncio.create_task(_probe_lag(lags))
    cpu_s = time.process_time()
    await load.run()
    cpu_s = time.process_time() - cpu_s
    probing.cancel()
    await asyncio.gather(probing, return_exceptions=True)
    tally = load.tally
    lag_p99_s = float(np.percentile(lags or [0.0], 99))
    return ClientReport(
        records=tally.records,
        audio_in_window_s=tally.in_window_s,
        audio_s=tally.audio_s,
        packets=tally.packets,
        wall_s=tally.now_s(),
        health=ClientHealth(
            cpu_s=cpu_s,
            lag_p99_s=lag_p99_s,
            lag_max_s=max(lags, default=0.0),
            behind=lag_p99_s > BEHIND_S,
        ),
    )


async def _probe_lag(lags: list[float]) -> None:
    while True:
        due = time.perf_counter() + _LAG_PROBE_S
        await asyncio.sleep(_LAG_PROBE_S)
        lags.append(max(0.0, time.perf_counter() - due))


class _Load:
    def __init__(self, spec: LoadSpec, target: Target, count_errors: CountErrors | None) -> None:
        self._spec = spec
        self._target = target
        self._texts = text_set(spec.texts, spec.seed)
        self._asked = 0
        self._count_errors = count_errors
        self._end_s = spec.warm_up_s + spec.seconds
        self.tally = _Tally(time.perf_counter(), (spec.warm_up_s, self._end_s), spec.counted_from_s)

    def end(self) -> None:
        """Request no more texts; what is being spoken is heard to its end."""
        self._end_s = self.tally.now_s()

    async def run(self) -> None:
        self.tally.began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            if self._spec.kind == "open":
                await self._space_arrivals(
                    lambda number: group.create_task(self._run_visit(number))
                )
            else:
                dice = random.Random(self._spec.seed)
                for number in range(self._spec.streams):
                    after_s = dice.uniform(0.0, self._spec.arrive_within_s)
                    group.create_task(self._run_stream(number, after_s), name=f"stream:{number}")

    async def _space_arrivals(self, begin: Callable[[int], Awaitable[None]]) -> None:
        """Poisson arrivals: the gaps between them are exponential."""
        dice = random.Random(self._spec.seed)
        due_s = dice.expovariate(self._spec.rate)
        number = 0
        while due_s < self._end_s:
            await asyncio.sleep(max(0.0, due_s - self.tally.now_s()))
            begin(number)
            number += 1
            due_s += dice.expovariate(self._spec.rate)

    async def _run_visit(self, number: int) -> None:
        async with self._open_connections(number) as speaker:
            await self._ask(speaker)

    async def _run_stream(self, number: int, after_s: float) -> None:
        await asyncio.sleep(after_s)
        async with self._open_connections(number) as speaker:
            while self.tally.now_s() < self._end_s:
                pause_s = await self._ask(speaker)
                await asyncio.sleep(pause_s)

    def _open_connections(self, number: int) -> Connections:
        return Connections(
            partial(open_speaker, self._target, self._spec.transport, number),
            one_request_each=self._spec.kind == "reconnecting",
        )

    async def _ask(self, speaker: Speaker) -> float:
        """Request one text until it is spoken or given up. Returns the pause after it."""
        text = self._texts[self._asked % len(self._texts)]
        self._asked += 1
        refusals = 0
        while True:
            listener = Listener(keep_sound=self._count_errors is not None)
            sent_s = self.tally.now_s()
            try:
                await speaker.speak(text, listener, self.tally.arrived)
            except NoRoom as refusal:
                refusals += 1
                again = self._spec.honour_retry_after and self._spec.kind != "open"
                retry_s = self._spec.retry_s or refusal.retry_after_s
                if not again or self.tally.now_s() + retry_s > self._end_s:
                    self._record_refusal(sent_s, text, refusals)
                    return retry_s if again else _GIVEN_UP_PAUSE_S
                await asyncio.sleep(retry_s)
            except (OSError, RequestFault) as error:
                self._record_failure(sent_s, text, refusals, error)
                return _GIVEN_UP_PAUSE_S
            else:
                await self._follow(listener, sent_s, text, refusals)
                if self._spec.kind not in ("live", "reconnecting") or not listener.arrivals:
                    return 0.0
                played_s = sent_s + heard_at_s(listener.arrivals)
                return max(0.0, played_s - self.tally.now_s())

    async def _follow(self, listener: Listener, sent_s: float, text: str, refusals: int) -> None:
        words, errors = 0, 0.0
        if self._count_errors is not None and listener.arrivals:
            words, errors = await asyncio.to_thread(
                self._count_errors, text, bytes(listener.sound), listener.sample_rate
            )
        self.tally.take(listener.record(sent_s, text, refusals, words, errors))

    def _record_refusal(self, sent_s: float, text: str, refusals: int) -> None:
        self.tally.take(
            ListenedRequest(
                outcome="refused", sent_s=sent_s, characters=len(text), refusals=refusals
            )
        )

    def _record_failure(self, sent_s: float, text: str, refusals: int, error: Exception) -> None:
        self.tally.take(
            ListenedRequest(
                outcome="failed",
                sent_s=sent_s,
                characters=len(text),
                refusals=refusals,
                error=str(error)[:200],
            )
        )
