"""`python -m e2e.soak`: serve the embedded voice under load, inject faults, check every sample.

Writes the figures as Markdown. The exit code is 1 if a check failed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cantata_bench.server import RunningServer, running_server

from .faults import FAULTS, STAGE_FAULTS, Target
from .listeners import Crowd
from .report import Injected, Soak
from .watching import Watch

_LOAD = 0.8
_BEGIN, _END = "<!-- soak -->", "<!-- /soak -->"
_VOICES = ("alloy", "onyx")


async def soak(server: RunningServer, options: argparse.Namespace) -> Soak:
    """Run against a server that is ready."""
    clock = asyncio.get_running_loop().time
    watch = Watch(server.url, server.pid)
    crowd = Crowd(server.url, _VOICES, options.seed)
    await crowd.learn()
    before = await watch.footprint()
    count = max(1, int(_LOAD * await watch.gauge("cantata_admission_places")))
    tasks = [asyncio.create_task(crowd.listen(number)) for number in range(count)]
    tasks.append(asyncio.create_task(watch.keep_looking()))
    injected: list[Injected] = []
    among = options.only or list(FAULTS)
    for fault in chosen(options.seed, round(60 * options.minutes / options.every), among):
        next_s = clock() + options.every
        await asyncio.sleep(options.every / 4)
        began_s = clock()
        await FAULTS[fault](Target(server.url, server.pid, watch))
        if fault in STAGE_FAULTS:
            async with asyncio.timeout(10):
                while await watch.is_ready():  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        await watch.until_ready()
        injected.append(Injected(fault, began_s, clock()))
        print(f"{fault}: ready {clock() - began_s:.1f} s later", file=sys.stderr, flush=True)
        await asyncio.sleep(max(0.0, next_s - clock()))
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if not isinstance(error, asyncio.CancelledError):
            raise RuntimeError("a listener or the watch ended by itself") from error
    after = await watch.footprint()
    await watch.close()
    return Soak(
        minutes=options.minutes,
        seed=options.seed,
        listeners=count,
        injected=injected,
        heard=crowd.heard,
        before=before,
        after=after,
        answers=watch.answers,
    )


def chosen(seed: int, count: int, among: Sequence[str]) -> list[str]:
    """Faults in an order set by the seed; each occurs once before any repeats."""
    dice = random.Random(seed)
    faults: list[str] = []
    while len(faults) < count:
        faults += dice.sample(among, len(among))
    return faults[:count]


def publish(page: Path, report: str) -> None:
    """Put the figures where the page has its markers."""
    before, rest = page.read_text(encoding="utf-8").split(_BEGIN)
    after = rest.split(_END)[1]
    page.write_text(f"{before}{_BEGIN}\n{report}{_END}{after}", encoding="utf-8")


def main() -> int:
    """Parse, run, write."""
    parser = argparse.ArgumentParser(prog="python -m e2e.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long to run")
    parser.add_argument(
        "--every", type=float, default=60.0, help="seconds from one fault to the next"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed: texts, order of faults")
    parser.add_argument(
        "--only", action="append", choices=list(FAULTS), help="inject only this fault; repeatable"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path("artifacts/soak"), help="folder for figures and logs"
    )
    parser.add_argument("--page", type=Path, help="Markdown page to update with the figures, too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as voices,
        running_server(
            options.folder / "server.log", options=["--model", "solo", "--voices-dir", voices]
        ) as server,
    ):
        result = asyncio.run(soak(server, options))
    report = result.markdown()
    (options.folder / "soak.md").write_text(report, encoding="utf-8")
    if options.page is not None:
        publish(options.page, report)
    print(report)
    for broken in result.broken_promises:
        print(f"NOT KEPT: {broken}")
    return 1 if result.broken_promises else 0


if __name__ == "__main__":
    sys.exit(main())
