"""Puts a whole run together: floor, server, loads, batch mode, a long text."""

from __future__ import annotations

import multiprocessing
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ParamSpec, TypeVar

import httpx
import psutil
import yaml

from cantata.config import CodecDeployment, Deployment, load_deployment
from cantata.contract.errors import ConfigError
from cantata.contract.plugin import ModelPlugin
from cantata.plugins import locate
from cantata_bench.floor import measure_floor
from cantata_bench.load import measured_load
from cantata_bench.long_text import speak_long
from cantata_bench.processes import watched
from cantata_bench.results import LoadResult, LoadSpec, LongText, Machine, Run
from cantata_bench.server import running_server, stage_gauges
from cantata_bench.summary import summarise
from cantata_bench.target import Target

P = ParamSpec("P")
R = TypeVar("R")

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured."""

    loads: tuple[LoadSpec, ...]
    batch_loads: tuple[LoadSpec, ...] = ()
    """Measured again with async_chunk: false."""
    floor_batches: tuple[int, ...] = ()
    """Empty: no floor."""
    long_minutes: float = 0.0
    """0: no long text."""
    asr: bool = False
    seed: int = 0


def measure_here(model: str | None, plan: Plan, folder: Path, tell: Tell) -> Iterator[Run]:
    """Start a server on this machine and measure it beside the bare model.

    Args:
        model: as `cantata serve --model` takes it.
        plan: what to measure.
        folder: for the servers' output.
        tell: is told what goes on.

    Yields:
        The run so far, each time that a part of it is there; the last one is the whole.

    Raises:
        ConfigError: no such model.
        RuntimeError: a server did not start.
    """
    located = locate(model)
    plugin = located.plugin
    deployment = load_deployment(plugin.deployment, plugin.pipeline)
    run = _described(plugin, deployment)
    if plan.floor_batches:
        tell("the bare model, without a server")
        floor = in_own_process(measure_floor, model, plan.floor_batches, plan.seed)
        run = run.model_copy(update={"floor": floor})
        yield run
    options = () if model is None else ("--model", model)
    with running_server(folder / "server.log", options=options) as server:
        startup = stage_gauges(server.url, "cantata_stage_startup_seconds")
        run = run.model_copy(update={"server_ready_s": server.startup_s, "stage_ready_s": startup})
        target = Target(server.url, voices=_voices(server.url))
        for so_far in _loaded(run, plan, target, server.pid, tell):
            run = so_far
            yield run
    if plan.batch_loads:
        whole = _whole(plugin.deployment, folder / "batch-mode.yaml")
        options = (*options, "--deploy", str(whole))
        with running_server(folder / "batch-mode.log", options=options) as server:
            target = Target(server.url, voices=_voices(server.url))
            _warm_up(target, plan.batch_loads)
            told = _prefixed(tell, "async_chunk false: ")
            loads = [_load(s, target, server.pid, plan.asr, told) for s in plan.batch_loads]
        yield run.model_copy(update={"batch_mode": tuple(loads)})


def measure_elsewhere(target: Target, plan: Plan, tell: Tell) -> Iterator[Run]:
    """Measure a server that runs already; its processes and its bare model are out of reach.

    Yields:
        As `measure_here` does.

    Raises:
        ConfigError: nobody answers there.
    """
    try:
        httpx.get(f"{target.url}/v1/models", headers=target.headers)
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise ConfigError(f"{target.url}: {error}") from error
    run = Run(began=_now(), machine=describe_machine(), model=target.model or target.url)
    yield from _loaded(run, plan, target, None, tell)


def _loaded(
    run: Run, plan: Plan, target: Target, server_pid: int | None, tell: Tell
) -> Iterator[Run]:
    """The run with another load each time, and at last with the long text."""
    _warm_up(target, plan.loads)
    for spec in plan.loads:
        result = _load(spec, target, server_pid, plan.asr, tell)
        run = run.model_copy(update={"loads": (*run.loads, result)})
        yield run
    if plan.long_minutes:
        tell(f"a text of {plan.long_minutes:g} minutes")
        yield run.model_copy(update={"long_text": _long(plan, target, server_pid)})


def _whole(deployment: Path, path: Path) -> Path:
    """A copy of a deployment in which every stage waits for the one before it."""
    raw = yaml.safe_load(deployment.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**raw, "async_chunk": False}), encoding="utf-8")
    return path


def _described(plugin: ModelPlugin, deployment: Deployment) -> Run:
    """A run that has not measured anything yet."""
    codecs = [s for s in deployment.stages.values() if isinstance(s, CodecDeployment)]
    return Run(
        began=_now(),
        machine=describe_machine(),
        model=plugin.name,
        slots=min(stage.slots for stage in deployment.stages.values()),
        max_chunk_frames=codecs[0].max_chunk_frames if codecs else 0,
        max_batch_frames=codecs[0].max_batch_frames if codecs else 0,
    )


def in_own_process(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run it in a fresh process and return what it returns."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args, **kwargs).result()


def describe_machine() -> Machine:
    """This one, and how busy it is already."""
    return Machine(
        cpu=_cpu_name(),
        cores=len(psutil.Process().cpu_affinity() or ()) or (os.cpu_count() or 1),
        load_average=os.getloadavg()[0],
        python=platform.python_version(),
    )


def _load(
    spec: LoadSpec, target: Target, server_pid: int | None, asr: bool, tell: Tell
) -> LoadResult:
    with watched(server_pid) as usage:
        report = in_own_process(measured_load, spec, target, asr)
    result = LoadResult(
        spec=spec,
        summary=summarise(report.records, report.audio_in_window_s / spec.seconds),
        requests=tuple(report.records),
        packets=report.packets,
        audio_s=report.audio_s,
        wall_s=report.wall_s,
        client=report.health,
        processes=usage.processes,
    )
    tell(_line(result))
    return result


def _line(result: LoadResult) -> str:
    found = result.summary
    if found is None:
        return f"{result.spec.title}: nothing was spoken"
    marks = "" if not result.client.behind else "  (the client fell behind)"
    return (
        f"{result.spec.title}: TTFP {1000 * found.ttfp.p50:.0f} / {1000 * found.ttfp.p95:.0f} ms, "
        f"{found.throughput_x:.1f} x, C0 {100 * found.continuous[0]:.1f}%, "
        f"{found.refusals} refusals{marks}"
    )


def _long(plan: Plan, target: Target, pid: int | None) -> LongText:
    with watched(pid) as before:
        in_own_process(speak_long, target, 1.0, plan.seed)
    with watched(pid) as after:
        record = in_own_process(speak_long, target, plan.long_minutes, plan.seed + 1)
    return LongText(
        minutes=plan.long_minutes,
        record=record,
        processes_before=before.processes,
        processes_after=after.processes,
    )


def _warm_up(target: Target, loads: Sequence[LoadSpec]) -> None:
    """The largest load for a moment, so that lazy loading is nobody's first packet."""
    streams = max((spec.streams for spec in loads), default=0) or 4
    for transport in sorted({spec.transport for spec in loads}):
        spec = LoadSpec(
            kind="closed", streams=streams, transport=transport, warm_up_s=0.0, seconds=3.0
        )
        in_own_process(measured_load, spec, target, False)


def _voices(url: str) -> tuple[str, ...]:
    listed = httpx.get(f"{url}/v1/audio/voices").json()["voices"]
    return tuple(voice["id"] for voice in listed if voice.get("kind", "stock") == "stock")


def _prefixed(tell: Tell, prefix: str) -> Tell:
    return lambda text: tell(prefix + text)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def ladder(
    streams: Sequence[int], rates: Sequence[float], transports: Sequence[str], base: LoadSpec
) -> tuple[LoadSpec, ...]:
    """Closed and live loops of every level, and open loads of every rate, over each transport."""
    return tuple(base.model_copy(update=update) for update in _levels(streams, rates, transports))


def _levels(
    streams: Sequence[int], rates: Sequence[float], transports: Sequence[str]
) -> Iterator[dict[str, object]]:
    for transport in transports:
        for count in streams:
            yield {"kind": "closed", "streams": count, "transport": transport}
    for count in streams[-2:]:
        yield {"kind": "live", "streams": count, "transport": transports[0]}
    for rate in rates:
        yield {"kind": "open", "rate": rate, "transport": transports[0]}
