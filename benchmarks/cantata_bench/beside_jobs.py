"""Whether live streams play without a gap beside kept jobs, and whether memory stays flat.

    python -m cantata_bench.beside_jobs [MINUTES [WORDS]]

The server speaks a book of so many words (100,000) as eight jobs of an eighth each, while two
listeners hear one text after the other. They did so without jobs first, for as long a time. A few
hundred words for each minute are written as files meanwhile, too.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psutil

from cantata.config.plugins import locate
from cantata_bench.client import Target, open_speaker
from cantata_bench.listener import Listener
from cantata_bench.results import ListenedRequest
from cantata_bench.server import running_server
from cantata_bench.texts import text_set, varied_text

JOBS = 8
LISTENERS = 2
SAMPLES = 8
"""Of memory, while the jobs are spoken."""
_MINUTES, _WORDS = 5.0, 100_000
_WORDS_PER_MINUTE = 150


@dataclass(frozen=True, slots=True)
class HeardBeside:
    """What the listeners had, and what the jobs did meanwhile."""

    alone: tuple[ListenedRequest, ...]
    beside: tuple[ListenedRequest, ...]
    sentences: int
    """Of all jobs, spoken beside the listeners."""
    seconds: float
    """Of sound of all jobs."""
    completed: int
    """Jobs whose files were written meanwhile."""
    memory: tuple[int, ...]
    """Bytes of all processes, shared memory counted once, in equal steps of time."""


def count_gapless(heard: Sequence[ListenedRequest]) -> int:
    """Those that a player without a buffer played without a gap."""
    return sum(one.outcome == "spoken" and one.underruns_s[0] == 0.0 for one in heard)


def make_book(words: int) -> list[str]:
    """The same for the same number: texts of the jobs, with a heading every thousand words."""
    chapters = max(JOBS, words // 1_000)
    each = words / chapters / _WORDS_PER_MINUTE
    made = [f"# Chapter {n + 1}\n\n{varied_text(each, n)}\n\n" for n in range(chapters)]
    return ["".join(made[job::JOBS]) for job in range(JOBS)]


async def measure(url: str, pid: int, minutes: float, words: int) -> HeardBeside:
    """Listen alone, then beside the jobs."""
    async with httpx.AsyncClient(base_url=url, timeout=120) as http:
        alone = await _listen(url, minutes)
        for text in make_book(words):
            body = {"input": text, "response_format": "m4b"}
            (await http.post("/v1/jobs", json=body)).raise_for_status()
        memory = list[int]()
        watching = asyncio.create_task(_watch(pid, minutes, memory))
        beside = await _listen(url, minutes)
        await watching
        jobs = (await http.get("/v1/jobs")).json()["data"]
    spoken, seconds = (sum(job[name] for job in jobs) for name in ("spoken", "seconds"))
    completed = sum(job["status"] == "completed" for job in jobs)
    return HeardBeside(alone, beside, spoken, seconds, completed, tuple(memory))


async def _listen(url: str, minutes: float) -> tuple[ListenedRequest, ...]:
    heard = list[ListenedRequest]()
    give_up = time.monotonic() + 60 * minutes
    texts = text_set("mixed", 7)

    async def hear(stream: int) -> None:
        async with open_speaker(Target(url), "websocket", stream) as speaker:
            number = stream
            while time.monotonic() < give_up:
                listener, text = Listener(), texts[number % len(texts)]
                await speaker.speak(text, listener, lambda audio_s: None)
                heard.append(listener.record(0.0, text, refusals=0))
                # A listener asks again when the text has been played.
                await asyncio.sleep(max(0.0, heard[-1].audio_s - heard[-1].e2e_s))
                number += LISTENERS

    async with asyncio.TaskGroup() as group:
        for stream in range(LISTENERS):
            group.create_task(hear(stream))
    return tuple(heard)


async def _watch(pid: int, minutes: float, memory: list[int]) -> None:
    server = psutil.Process(pid)
    for _ in range(SAMPLES):
        await asyncio.sleep(60 * minutes / SAMPLES)
        family = [server, *server.children(recursive=True)]
        memory.append(sum(one.memory_full_info().pss for one in family))


def _describe_gaps(heard: Sequence[ListenedRequest]) -> str:
    """How many had no gap, and how long the others'."""
    gaps = sorted(one.underruns_s[0] for one in heard if one.underruns_s[0] > 0.0)
    lasted = ", ".join(f"{1_000 * one:.0f}" for one in gaps)
    share = f"{count_gapless(heard)} of {len(heard)}"
    return f"{share} (gaps of {lasted} ms)" if gaps else share


def report(found: HeardBeside) -> str:
    """The figures, on a line each."""
    memory = ", ".join(f"{one >> 20}" for one in found.memory)
    return "\n".join(
        (
            f"without a gap alone: {_describe_gaps(found.alone)}",
            f"beside {JOBS} jobs: {_describe_gaps(found.beside)}",
            f"the jobs meanwhile: {found.sentences} sentences, {found.seconds:.0f} s of sound, "
            f"{found.completed} files written",
            f"memory in MiB: {memory}",
        )
    )


def main() -> None:
    """Entry point."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else _MINUTES
    words = int(sys.argv[2]) if len(sys.argv) > 2 else _WORDS
    with TemporaryDirectory() as folder:
        options = ["--voices-dir", f"{folder}/voices", "--jobs-dir", f"{folder}/jobs"]
        options += ["--model", locate(None).plugin.name]
        with running_server(Path(folder) / "log", options=options) as server:
            print(report(asyncio.run(measure(server.url, server.pid, minutes, words))))


if __name__ == "__main__":
    main()
