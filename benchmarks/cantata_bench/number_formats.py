"""What a talker takes with its weights in each number format: time of a step, and memory.

    python -m cantata_bench.number_formats FOLDER [--streams 1 4 8] [--frames 16] [--turns 2]

Each format's talker runs in a process of its own, without codec and server; the formats take turns,
so that what else the machine does affects all of them alike. Ratios count, not times.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from cantata.config import ArDeployment, Deployment, load_deployment
from cantata.config.plugins import locate
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.pipeline import StageKind, StageSpec
from cantata.contract.process.stage import Stage
from cantata.stages.process.launch import build_stage, settle_threads
from cantata_bench.machine import describe_machine, in_own_process
from cantata_bench.model_page.work import SpeechWork
from cantata_bench.tables import table

POSITIONS = 1024
"""Of a request; keys and values have room for as many in each slot."""


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """How weights are held."""

    dtype: str
    quantization: str | None = None

    @property
    def label(self) -> str:
        """For people."""
        return self.dtype if self.quantization is None else f"{self.quantization}, {self.dtype}"


FORMATS = (
    NumberFormat("float32"),
    NumberFormat("float32", "int8"),
    NumberFormat("bfloat16"),
    NumberFormat("bfloat16", "int8"),
)


@dataclass(frozen=True, slots=True)
class FormatFigures:
    """One talker in one process."""

    private_bytes: int
    """Of the process, after its last request: memory that no other process has."""
    loaded_s: float
    frame_period_s: float
    steps_s: tuple[tuple[float, ...], ...]
    """For each number of streams, seconds of the steps that made a frame for all of them."""


def run_talker(
    model: str, number_format: NumberFormat, streams: Sequence[int], frames: int
) -> FormatFigures:
    """Load a talker and let it speak; in a process of its own.

    Raises:
        ConfigError: the model's sound begins with no talker of its own, or cannot be so deployed.
    """
    located = locate(model)
    own = load_deployment(located.plugin.deployment, located.plugin.pipeline)
    spec, deployment = _find_talker(located.pipeline.stages, own, number_format, streams)
    settle_threads()
    began = time.perf_counter()
    stage = build_stage(spec, located.checkpoint, deployment)
    loaded_s = time.perf_counter() - began
    work = SpeechWork(frames)
    try:
        steps = []
        for count in streams:
            requests = work.built(located, [f"{count}-{number}" for number in range(count)])
            for request in requests:
                stage.add(request.request_id, request.inputs[spec.name], batch=False)
            steps.append(tuple(step_all(stage, count)))
        period_s = stage.capacity.frame_period_s
        assert period_s is not None, "a talker's frames have a length"
        private = psutil.Process(os.getpid()).memory_full_info().uss
        return FormatFigures(private, loaded_s, period_s, tuple(steps))
    finally:
        stage.close()


def _find_talker(
    stages: Sequence[StageSpec],
    deployment: Deployment,
    number_format: NumberFormat,
    streams: Sequence[int],
) -> tuple[StageSpec, ArDeployment]:
    talkers = [spec for spec in stages if spec.kind is StageKind.AR]
    if len(talkers) != 1:
        raise ConfigError(f"of the stages exactly one is a talker's; here {len(talkers)} are")
    own = deployment.stages[talkers[0].name]
    assert isinstance(own, ArDeployment)
    settings = {
        **own.model_dump(),
        "dtype": number_format.dtype,
        "quantization": number_format.quantization,
        "slots": max(streams),
        "max_model_len": min(own.max_model_len, POSITIONS),
    }
    return talkers[0], ArDeployment.model_validate(settings)


def step_all(stage: Stage, count: int) -> list[float]:
    """Step to the end of all requests. Returns the times of full steps but the first, which reads
    the prompts."""
    times: list[float] = []
    while stage.has_work():
        began = time.perf_counter()
        result = stage.step()
        seconds = time.perf_counter() - began
        if result.failures:
            raise ConfigError(f"the talker failed: {result.failures[0][1]}")
        if len({chunk.request_id for chunk in result.chunks}) == count:
            times.append(seconds)
    if len(times) < 2:
        raise ConfigError(f"{count} requests made no frames together")
    return times[1:]


def measure_formats(
    model: str, streams: Sequence[int], frames: int, turns: int
) -> dict[NumberFormat, list[FormatFigures]]:
    """Every format in every turn, each in a process of its own."""
    found: dict[NumberFormat, list[FormatFigures]] = {one: [] for one in FORMATS}
    for _ in range(turns):
        for one in FORMATS:
            found[one].append(in_own_process(run_talker, model, one, streams, frames))
    return found


def make_formats_table(
    found: dict[NumberFormat, list[FormatFigures]], streams: Sequence[int]
) -> str:
    """Medians, and how they compare with the first format's."""
    rows, base = [], list[float]()
    for one, figures in found.items():
        steps = [
            statistics.median(s for figure in figures for s in figure.steps_s[index])
            for index in range(len(streams))
        ]
        base = base or steps
        cells = [
            f"{1e3 * s:.0f} ms ({b / s:.2f} x), RTF {s / figures[0].frame_period_s:.2f}"
            for s, b in zip(steps, base, strict=True)
        ]
        memory = statistics.median(figure.private_bytes for figure in figures)
        loaded = statistics.median(figure.loaded_s for figure in figures)
        rows.append((one.label, f"{memory / 2**20:.0f} MiB", f"{loaded:.0f} s", *cells))
    head = ("weights", "private memory", "loaded after", *(f"a step of {n}" for n in streams))
    return table(head, rows)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m cantata_bench.number_formats")
    parser.add_argument("folder", help="a checkpoint, or a model's name")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--frames", type=int, default=16)
    parser.add_argument("--turns", type=int, default=2)
    arguments = parser.parse_args()
    machine = describe_machine()
    found = measure_formats(arguments.folder, arguments.streams, arguments.frames, arguments.turns)
    print(f"{machine.cores} cores of {machine.cpu}, load {machine.load_average:.1f}\n")
    print(make_formats_table(found, arguments.streams))


if __name__ == "__main__":
    main()
