"""Two servers that run at the same time and are asked in turns."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx
import psutil

from cantata_bench.peers.contenders import Contender
from cantata_bench.server import READY_DEADLINE_S, end, free_port

BYTES_PER_SAMPLE = 2
ANSWER_DEADLINE_S = 600.0
"""Of one request, with all waiting for a place."""


@dataclass(frozen=True, slots=True)
class HeardText:
    """One request."""

    first_s: float
    """Seconds until the first sample."""
    whole_s: float
    sound_s: float


@dataclass(frozen=True, slots=True)
class DuelRound:
    """So many requests at once."""

    first_s: float
    """Median of the requests."""
    throughput_x: float
    """Seconds of sound per second, of all together."""
    memory_bytes: int
    """Of all processes behind it, memory that they share counted once (PSS)."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """What one server takes of what the other takes, by turns."""

    middle: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Compared:
    """One number of requests at once: the first contender's figures by the second's."""

    listeners: int
    first: Ratio
    throughput: Ratio
    memory: Ratio


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
        received, first_s = 0, 0.0
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
                if not first_s and received > contender.header_bytes:
                    first_s = time.perf_counter() - begun
        samples = max(received - contender.header_bytes, 0) // BYTES_PER_SAMPLE
        if not samples:
            raise RuntimeError(f"{contender.name}: no sound")
        return HeardText(first_s, time.perf_counter() - begun, samples / contender.sample_rate)


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
) -> list[Compared]:
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
            found.append(summarise_pairs(count, pairs))
        return found


def summarise_pairs(listeners: int, pairs: Sequence[tuple[DuelRound, DuelRound]]) -> Compared:
    """The ratios of each turn, and their middle."""

    def divide(read: Callable[[DuelRound], float]) -> Ratio:
        ratios = [read(mine) / read(other) for mine, other in pairs]
        return Ratio(median(ratios), min(ratios), max(ratios))

    return Compared(
        listeners,
        divide(lambda one: one.first_s),
        divide(lambda one: one.throughput_x),
        divide(lambda one: one.memory_bytes),
    )
