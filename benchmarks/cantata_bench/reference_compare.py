"""Compare a model in the server with its reference package: same checkpoint, text and length.

    python -m cantata_bench.reference_compare FOLDER --reference-python .venv-reference/bin/python
        [--streams 8] [--frames 60] [--dtype float32]

The reference runs first, in a process of its own, with one thread and then with one per core. The
server runs after it, so that neither slows the other down. The model's folder has the script that
measures its reference (`SCRIPT`); it prints a `Report`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from cantata.config.plugins import locate
from cantata.contract.data.errors import ConfigError
from cantata_bench.first_packet import ROUNDS, TEXT, StreamTimes, hear_rounds, serving
from cantata_bench.machine import describe_machine
from cantata_bench.results import Frozen
from cantata_bench.tables import table

SCRIPT = Path("tests", "parity", "measure_speed.py")
"""Inside a model's folder, for the Python that has the reference implementation."""
TOLERANCE_S = 0.04
"""Most seconds by which two utterances with equally many frames may differ in length."""


@dataclass(frozen=True, slots=True)
class ReferenceWork:
    """The work for both."""

    checkpoint: str
    streams: int
    frames: int
    """Frames of each text."""
    dtype: str


class ReferenceCall(Frozen):
    """Some texts in one call of the reference, one item for each time that it was made."""

    texts: int = Field(gt=0)
    whole_s: tuple[float, ...] = Field(min_length=1)
    audio_s: tuple[float, ...] = Field(min_length=1)
    """Seconds of sound of all texts together."""

    @property
    def p50_s(self) -> float:
        """Median time until all sound is there: the first sample comes no sooner."""
        return statistics.median(self.whole_s)

    @property
    def throughput_x(self) -> float:
        """Seconds of sound per second, in the median round as every figure here."""
        calls = zip(self.audio_s, self.whole_s, strict=True)
        return statistics.median(audio_s / whole_s for audio_s, whole_s in calls)

    @property
    def text_s(self) -> float:
        """Sound of one text."""
        return statistics.median(self.audio_s) / self.texts


class Report(Frozen):
    """The report that the reference's script prints."""

    threads: int
    calls: tuple[ReferenceCall, ...] = Field(min_length=1)
    """The first one speaks one text."""


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """Times of one way to speak, for one text and for many."""

    system: str
    way: str
    """How it speaks many."""
    first_p50_s: float
    """Alone."""
    whole_p50_s: float
    """Alone."""
    alone_x: float
    """Seconds of sound per second with one text at a time."""
    many_x: float
    """Seconds of sound per second for as many texts as wanted."""
    text_s: float
    """Sound of one text."""


def served_row(alone: list[list[StreamTimes]], many: list[list[StreamTimes]]) -> ComparedRow:
    """The server's, of what was heard.

    Raises:
        RuntimeError: it rejected a request.
    """
    first = [one.first_s for found in alone for one in found if one.first_s is not None]
    if any(one.first_s is None for found in (*alone, *many) for one in found):
        raise RuntimeError("the server rejected streams: use fewer")
    whole = [one.whole_s for found in alone for one in found]
    return ComparedRow(
        "server",
        f"{len(many[0])} at a time",
        statistics.median(first),
        statistics.median(whole),
        _measure_throughput(alone),
        _measure_throughput(many),
        statistics.median(one.audio_s for found in many for one in found),
    )


def reference_rows(report: Report) -> Iterator[ComparedRow]:
    """One row for texts spoken one after another, and one for each call that speaks several."""
    alone = report.calls[0]
    name = f"reference, {report.threads} thread{'s' if report.threads > 1 else ''}"
    own = (alone.p50_s, alone.p50_s, alone.throughput_x)
    yield ComparedRow(name, "one after another", *own, alone.throughput_x, alone.text_s)
    for call in report.calls[1:]:
        yield ComparedRow(name, f"{call.texts} in one call", *own, call.throughput_x, call.text_s)


def check_lengths(served: ComparedRow, references: list[ComparedRow]) -> None:
    """Check that both did the same work.

    Raises:
        RuntimeError: one of them did not speak as long as the server.
    """
    for row in references:
        if abs(row.text_s - served.text_s) > TOLERANCE_S:
            raise RuntimeError(
                f"{row.system}, {row.way}: {row.text_s:.2f} s of sound a text, and the server made "
                f"{served.text_s:.2f} s: take fewer frames, or another checkpoint"
            )


def tables(served: ComparedRow, references: list[ComparedRow], streams: int) -> str:
    """All figures, and the server's relative to the fastest reference in each."""
    head = ("", "TTFP p50", "whole p50", "audio-s/s at 1", f"audio-s/s at {streams}")
    lines = [
        (
            f"{row.system}, {row.way}",
            f"{row.first_p50_s:.3f} s",
            f"{row.whole_p50_s:.2f} s",
            f"{row.alone_x:.2f}",
            f"{row.many_x:.2f}",
        )
        for row in (served, *references)
    ]
    return (
        table(head, lines) + "\n" + table(("ratio", ""), _list_ratios(served, references, streams))
    )


def _list_ratios(
    served: ComparedRow, references: list[ComparedRow], streams: int
) -> Iterator[tuple[str, str]]:
    first = min(row.first_p50_s for row in references)
    yield "first sound: fastest reference / server", f"{first / served.first_p50_s:.1f}"
    alone = max(row.alone_x for row in references)
    yield "audio-s/s at 1: server / fastest reference", f"{served.alone_x / alone:.1f}"
    for way in dict.fromkeys(row.way for row in references):
        best = max(row.many_x for row in references if row.way == way)
        name = f"audio-s/s at {streams}: server / fastest reference, {way}"
        yield name, f"{served.many_x / best:.1f}"


def _measure_throughput(rounds: list[list[StreamTimes]]) -> float:
    """All streams of a round begin together; it ends with the last of them."""
    return statistics.median(
        sum(one.audio_s for one in found) / max(one.whole_s for one in found) for found in rounds
    )


def measure_reference(python: Path, work: ReferenceWork, threads: int) -> Report:
    """Run the model's script in the reference's Python.

    Raises:
        ConfigError: the model has none.
        subprocess.CalledProcessError: it failed; it has said why.
    """
    plugin = locate(work.checkpoint).plugin
    script = plugin.deployment.parent / SCRIPT
    if not script.is_file():
        raise ConfigError(f"model {plugin.name!r} has no {SCRIPT}: no reference to measure")
    root = next(folder for folder in script.parents if not (folder / "__init__.py").is_file())
    options = {"text": TEXT, "frames": work.frames, "rounds": ROUNDS, "dtype": work.dtype}
    command = [str(python), str(script), work.checkpoint]
    command += [f"--{name}={value}" for name, value in options.items()]
    command += ["--texts", *(str(count) for count in sorted({1, work.streams}))]
    environment = os.environ | {
        "PYTHONPATH": str(root),
        "OMP_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    # The last line is the script's; what a package prints when it is imported comes before.
    return Report.model_validate_json(done.stdout.splitlines()[-1])


def measure_served(work: ReferenceWork) -> ComparedRow:
    """A server of its own, one stream at a time and many."""
    with serving(work.checkpoint, slots=work.streams, dtype=work.dtype) as server:
        alone = asyncio.run(hear_rounds(server.url, 1, work.frames))
        many = asyncio.run(hear_rounds(server.url, work.streams, work.frames))
    return served_row(alone, many)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", help="folder of a checkpoint with stock voices")
    parser.add_argument(
        "--reference-python",
        type=Path,
        required=True,
        help="Python that has the reference package; `make parity MODEL=qwen3_tts` installs one",
    )
    parser.add_argument("--streams", type=int, default=8, help="most streams at a time")
    parser.add_argument("--frames", type=int, default=60, help="length of an utterance")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    given = parser.parse_args()
    if not given.reference_python.is_file():
        parser.error(
            f"--reference-python: no file {given.reference_python}; "
            "`make parity MODEL=qwen3_tts` installs one"
        )
    work = ReferenceWork(given.checkpoint, given.streams, given.frames, given.dtype)
    machine = describe_machine()
    references: list[ComparedRow] = []
    for threads in sorted({1, machine.cores}):
        report = measure_reference(given.reference_python, work, threads)
        references += reference_rows(report)
    served = measure_served(work)
    check_lengths(served, references)
    print(f"{machine.cores} cores of {machine.cpu}, load {machine.load_average:.1f} before.\n")
    print(tables(served, references, work.streams), end="")


if __name__ == "__main__":
    main()
