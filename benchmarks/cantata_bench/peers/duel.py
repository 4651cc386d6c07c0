"""Two servers that run at the same time and are asked in turns."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

import httpx
import psutil

from cantata_bench.peers.contenders import Contender
from cantata_bench.server import READY_DEADLINE_S, end, free_port

BYTES_PER_SAMPLE = 2
ANSWER_DEADLINE_S = 600.0
"""Of one request, with all waiting for a place."""


@dataclass(frozen=True, slots=True)
class SoundArrival:
    """A part of a sound that came."""

    at_s: float
    """Since the request."""
    sound_s: float
    """Of all that has come, this part too."""


@dataclass(frozen=True, slots=True)
class HeardText:
    """One request."""

    first_s: float
    """Seconds until the first sample."""
    whole_s: float
    sound_s: float
    is_gapless: bool
    """A player without a buffer, which starts with the first sample, never runs dry."""


@dataclass(frozen=True, slots=True)
class DuelRound:
    """So many requests at once."""

    first_s: float
    """Median of the requests."""
    throughput_x: float
    """Seconds of sound per second, of all together."""
    memory_bytes: int
    """Of all processes behind it, memory that they share counted once (PSS)."""
    gapless: float
    """Share of the requests whose player never runs dry without a buffer (C0)."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """What one server takes of what the other takes, by turns."""

    middle: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class DuelResult:
    """One number of requests at once: the first contender's figures by the second's."""

    listeners: int
    first: Ratio
    throughput: Ratio
    memory: Ratio
    gapless: tuple[float, float]
    """Share of all requests that played without a gap: the first contender's, the second's."""


@contextmanager
def serving(contender: Contender, log: Path) -> Iterator[tuple[str, psutil.Process]]:
    """A contender's server for the time of the block: its address and process.

    Raises:
        RuntimeError: it ended or was not ready in time; the message has its last lines.
    """
    port = str(free_port())
    command = [part.replace("{port}", port) for part in contender.command]
    extra = {name: one.replace("{port}", port) for name, one in contender.environment.items()}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **extra}
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(process, url + contender.ready_route, log)
        yield url, psutil.Process(process.pid)
    finally:
        end(process)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    begun = time.monotonic()
    while time.monotonic() - begun < READY_DEADLINE_S and process.poll() is None:
        try:
            if httpx.get(url, timeout=5).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass  # it does not listen yet
        time.sleep(0.1)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise RuntimeError(f"the server was not ready (exit code {process.poll()}):\n{tail}")


async def hear(http: httpx.AsyncClient, contender: Contender, url: str, text: str) -> HeardText:
    """Ask for a text, again where there was no room, and time its sound.

    Raises:
        RuntimeError: another answer than sound.
    """
    begun = time.perf_counter()
    while True:
        arrivals = list[SoundArrival]()
        received = 0
        asked = http.stream("POST", url + contender.route, **contender.ask(text))
        async with asked as answer:
            if answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
                await asyncio.sleep(float(answer.headers.get("retry-after", 1)))
                continue
            if answer.status_code != httpx.codes.OK:
                said = (await answer.aread()).decode(errors="replace")[:300]
                raise RuntimeError(f"{contender.name}: {answer.status_code}: {said}")
            async for data in answer.aiter_raw():
                received += len(data)
                samples = max(received - contender.header_bytes, 0) // BYTES_PER_SAMPLE
                if samples:
                    sound_s = samples / contender.sample_rate
                    arrivals.append(SoundArrival(time.perf_counter() - begun, sound_s))
        if not arrivals:
            raise RuntimeError(f"{contender.name}: no sound")
        whole_s, last = time.perf_counter() - begun, arrivals[-1]
        return HeardText(arrivals[0].at_s, whole_s, last.sound_s, is_gapless(arrivals))


def is_gapless(arrivals: Sequence[SoundArrival]) -> bool:
    """Whether a player that starts with the first arrival has sound until each next one."""
    starts_s = arrivals[0].at_s
    return all(later.at_s - starts_s <= earlier.sound_s for earlier, later in pairwise(arrivals))


async def speak_round(
    contender: Contender, url: str, process: psutil.Process, texts: Sequence[str]
) -> DuelRound:
    """Ask for all texts at once."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=ANSWER_DEADLINE_S, limits=limits) as http:
        begun = time.perf_counter()
        heard = await asyncio.gather(*(hear(http, contender, url, text) for text in texts))
        wall_s = time.perf_counter() - begun
    return DuelRound(
        median(one.first_s for one in heard),
        sum(one.sound_s for one in heard) / wall_s,
        sum(_sum_proportional_bytes(one) for one in [process, *process.children(recursive=True)]),
        mean(one.is_gapless for one in heard),
    )


def _sum_proportional_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0


def compare(
    contenders: tuple[Contender, Contender],
    listeners: Sequence[int],
    turns: int,
    texts: Sequence[str],
    folder: Path,
    tell: Callable[[str], None],
) -> list[DuelResult]:
    """Measure both servers in turns, each with as many requests at once as there are listeners.

    Args:
        contenders: the first one's figures are divided by the second's.
        listeners: requests at once.
        turns: of each number of requests, after one that is not counted.
        texts: dealt out to the listeners.
        folder: for the servers' logs.
        tell: takes a line for each turn.

    Raises:
        RuntimeError: a server did not start, or did not speak.
    """
    ours, theirs = contenders
    with (
        serving(ours, folder / f"{ours.name}.log") as (url, process),
        serving(theirs, folder / f"{theirs.name}.log") as (their_url, their_process),
    ):
        found = []
        for count in listeners:
            pairs = list[tuple[DuelRound, DuelRound]]()
            for turn in range(turns + 1):
                # The order changes, so that a drift of the machine favours neither.
                chosen = [texts[index % len(texts)] for index in range(count)]
                both = [(ours, url, process), (theirs, their_url, their_process)]
                rounds = {
                    one.name: asyncio.run(speak_round(one, where, run, chosen))
                    for one, where, run in (both if turn % 2 else both[::-1])
                }
                if turn:
                    pairs.append((rounds[ours.name], rounds[theirs.name]))
                    tell(f"{count} listeners, turn {turn} of {turns}")
            found.append(summarize_pairs(count, pairs))
        return found


def summarize_pairs(listeners: int, pairs: Sequence[tuple[DuelRound, DuelRound]]) -> DuelResult:
    """The ratios of each turn, and their middle."""

    def divide(read: Callable[[DuelRound], float]) -> Ratio:
        ratios = [read(mine) / read(other) for mine, other in pairs]
        return Ratio(median(ratios), min(ratios), max(ratios))

    return DuelResult(
        listeners,
        divide(lambda one: one.first_s),
        divide(lambda one: one.throughput_x),
        divide(lambda one: one.memory_bytes),
        (mean(mine.gapless for mine, _ in pairs), mean(other.gapless for _, other in pairs)),
    )
