"""Puts a whole run together: floor, server, loads, batch mode, a long text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import yaml

from cantata.config import CodecDeployment, Deployment, load_deployment
from cantata.config.plugins import locate
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.plugin import ModelPlugin
from cantata_bench.baseline import measure_floor
from cantata_bench.client import Target
from cantata_bench.interleave import RepeatBudget, in_turns
from cantata_bench.load import measured_load, speak_long
from cantata_bench.machine import describe_machine, in_own_process, watched
from cantata_bench.noise_guard import observed
from cantata_bench.results import (
    STAMPEDE,
    BenchRun,
    LoadResult,
    LoadSpec,
    LongText,
    ServerlessBaseline,
)
from cantata_bench.server import running_server, stage_gauges
from cantata_bench.summary import summarize

Tell = Callable[[str], None]

_ARRIVE_WITHIN_S = 2.0
_RETRY_S = 1.0
"""Seconds after which a stampede's listeners retry, whatever `retry-after` says."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run measures."""

    loads: tuple[LoadSpec, ...]
    batch_loads: tuple[LoadSpec, ...] = ()
    """Measured after those, in turns with the same load under async_chunk: false."""
    floor_batches: tuple[int, ...] = ()
    """Empty: no floor."""
    long_minutes: float = 0.0
    """0: no long text."""
    asr: bool = False
    seed: int = 0


def measure_here(model: str | None, plan: Plan, folder: Path, tell: Tell) -> Iterator[BenchRun]:
    """Start a server on this machine and measure it next to the bare model.

    Args:
        model: as `cantata serve --model` takes it.
        plan: what to measure.
        folder: for the servers' output.
        tell: receives progress messages.

    Yields:
        The run so far, each time that a part of it is there; the last one is the whole.

    Raises:
        ConfigError: no such model.
        RuntimeError: a server did not start.
    """
    located = locate(model)
    plugin = located.plugin
    deployment = load_deployment(plugin.deployment, plugin.pipeline)
    run = _describe(plugin, deployment)
    patience = RepeatBudget(tell)
    if plan.floor_batches:
        tell("the bare model, without a server")
        run = run.model_copy(update={"floor": _measure_calm_floor(model, plan, patience)})
        yield run
    options: tuple[str, ...] = ("--model", plugin.name if model is None else model)
    with running_server(folder / "server.log", options=options) as server:
        startup = stage_gauges(server.url, "cantata_stage_startup_seconds")
        run = run.model_copy(update={"server_ready_s": server.startup_s, "stage_ready_s": startup})
        target = Target(server.url, voices=_list_voices(server.url))
        for so_far in _measure_loads(run, plan, target, server.pid, patience):
            run = so_far
            yield run
        if plan.batch_loads:
            whole = _write_whole_deployment(plugin.deployment, folder / "batch-mode.yaml")
            options = (*options, "--deploy", str(whole))
            with running_server(folder / "batch-mode.log", options=options) as other:
                batch_target = Target(other.url, voices=_list_voices(other.url))
                _warm_up(batch_target, plan.batch_loads)
                modes = (target, server.pid), (batch_target, other.pid)
                yield _measure_compared(run, plan, *modes, patience)


def measure_elsewhere(target: Target, plan: Plan, tell: Tell) -> Iterator[BenchRun]:
    """Measure a server that runs already; its processes and its bare model are out of reach.

    Yields:
        As `measure_here` does.

    Raises:
        ConfigError: no server answers there.
    """
    try:
        httpx.get(f"{target.url}/v1/models", headers=target.headers)
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise ConfigError(f"{target.url}: {error}") from error
    run = BenchRun(
        began=_format_now(), machine=describe_machine(), model=target.model or target.url
    )
    yield from _measure_loads(run, plan, target, None, RepeatBudget(tell))


def _measure_loads(
    run: BenchRun, plan: Plan, target: Target, server_pid: int | None, patience: RepeatBudget
) -> Iterator[BenchRun]:
    """The run with another load each time, and at last with the long text."""
    _warm_up(target, plan.loads)
    for spec in plan.loads:
        result = _load(spec, target, server_pid, plan.asr, patience)
        run = run.model_copy(update={"loads": (*run.loads, result)})
        yield run
    if plan.long_minutes:
        patience.tell(f"a text of {plan.long_minutes:g} minutes")
        yield run.model_copy(update={"long_text": _measure_long_text(plan, target, server_pid)})


def _write_whole_deployment(deployment: Path, path: Path) -> Path:
    """A copy of a deployment in which every stage waits for the one before it."""
    raw = yaml.safe_load(deployment.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**raw, "async_chunk": False}), encoding="utf-8")
    return path


def _describe(plugin: ModelPlugin, deployment: Deployment) -> BenchRun:
    """A run that has not measured anything yet."""
    codecs = [s for s in deployment.stages.values() if isinstance(s, CodecDeployment)]
    return BenchRun(
        began=_format_now(),
        machine=describe_machine(),
        model=plugin.name,
        slots=min(stage.slots for stage in deployment.stages.values()),
        max_chunk_frames=codecs[0].max_chunk_frames if codecs else 0,
        max_batch_frames=codecs[0].max_batch_frames if codecs else 0,
    )


def _measure_calm_floor(
    model: str | None, plan: Plan, patience: RepeatBudget
) -> ServerlessBaseline:
    """Measured again while something disturbs it, `ATTEMPTS` times in all."""

    def attempt() -> ServerlessBaseline:
        with observed() as observation:
            floor = in_own_process(measure_floor, model, plan.floor_batches, plan.seed)
        return floor.model_copy(update={"disturbance": observation.disturbance})

    return patience.repeated(attempt, lambda floor: floor.disturbance)


def _measure_compared(
    run: BenchRun,
    plan: Plan,
    streaming: tuple[Target, int],
    whole: tuple[Target, int],
    patience: RepeatBudget,
) -> BenchRun:
    """The run with both modes' loads, measured in turns."""
    reported = _add_prefix(patience.tell, "async_chunk false: ")
    for spec in plan.batch_loads:
        ours, theirs = in_turns(
            spec,
            lambda part: _load_once(part, *streaming, plan.asr, patience.tell),
            lambda part: _load_once(part, *whole, plan.asr, reported),
            patience,
        )
        run = run.model_copy(
            update={"loads": (*run.loads, ours), "batch_mode": (*run.batch_mode, theirs)}
        )
    return run


def _load(
    spec: LoadSpec, target: Target, server_pid: int | None, asr: bool, patience: RepeatBudget
) -> LoadResult:
    """Measured again while something disturbs it, `ATTEMPTS` times in all."""
    return patience.repeated(
        lambda: _load_once(spec, target, server_pid, asr, patience.tell),
        lambda found: found.doubt,
    )


def _load_once(
    spec: LoadSpec, target: Target, server_pid: int | None, asr: bool, tell: Tell
) -> LoadResult:
    with observed() as observation, watched(server_pid) as usage:
        report = in_own_process(measured_load, spec, target, asr)
    result = LoadResult(
        spec=spec,
        summary=summarize(report.records, report.audio_in_window_s / spec.seconds),
        requests=tuple(report.records),
        packets=report.packets,
        audio_s=report.audio_s,
        wall_s=report.wall_s,
        client=report.health,
        processes=usage.processes,
        # A server that was not started here is itself one of the other processes.
        disturbance=observation.disturbance if server_pid is not None else "",
    )
    tell(_format_line(result))
    return result


def _format_line(result: LoadResult) -> str:
    found = result.summary
    if found is None:
        return f"{result.spec.title}: nothing was spoken"
    marks = f"  ({result.doubt})" if result.doubt else ""
    return (
        f"{result.spec.title}: TTFP {1000 * found.ttfp.p50:.0f} / {1000 * found.ttfp.p95:.0f} ms, "
        f"{found.throughput_x:.1f} x, C0 {100 * found.continuous[0]:.1f}%, "
        f"{found.refusals} refusals{marks}"
    )


def _measure_long_text(plan: Plan, target: Target, pid: int | None) -> LongText:
    with watched(pid) as before:
        in_own_process(speak_long, target, 1.0, plan.seed)
    with observed() as observation, watched(pid) as after:
        record = in_own_process(speak_long, target, plan.long_minutes, plan.seed + 1)
    return LongText(
        minutes=plan.long_minutes,
        record=record,
        processes_before=before.processes,
        processes_after=after.processes,
        disturbance=observation.disturbance if pid is not None else "",
    )


def _warm_up(target: Target, loads: Sequence[LoadSpec]) -> None:
    """A moment of the largest load, so that lazy loading delays no measured packet."""
    streams = max((spec.streams for spec in loads), default=0) or 4
    for transport in sorted({spec.transport for spec in loads}):
        spec = LoadSpec(
            kind="closed", streams=streams, transport=transport, warm_up_s=0.0, seconds=3.0
        )
        in_own_process(measured_load, spec, target, False)


def _list_voices(url: str) -> tuple[str, ...]:
    listed = httpx.get(f"{url}/v1/audio/voices").json()["voices"]
    return tuple(voice["id"] for voice in listed if voice.get("kind", "stock") == "stock")


def _add_prefix(tell: Tell, prefix: str) -> Tell:
    return lambda text: tell(prefix + text)


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def ladder(
    streams: Sequence[int], rates: Sequence[float], transports: Sequence[str], base: LoadSpec
) -> tuple[LoadSpec, ...]:
    """Closed and live loops of every level, and open loads of every rate, over each transport."""
    return tuple(
        base.model_copy(update=update) for update in _list_levels(streams, rates, transports)
    )


def stampede(capacity: int, base: LoadSpec) -> tuple[LoadSpec, ...]:
    """Three times as many listeners as there are places, all at once; rejected ones retry a second
    later."""
    return tuple(
        base.model_copy(
            update={
                "kind": kind,
                "streams": STAMPEDE * capacity,
                "arrive_within_s": _ARRIVE_WITHIN_S,
                "retry_s": _RETRY_S,
            }
        )
        for kind in ("closed", "live", "reconnecting")
    )


def _list_levels(
    streams: Sequence[int], rates: Sequence[float], transports: Sequence[str]
) -> Iterator[dict[str, object]]:
    for transport in transports:
        for count in streams:
            yield {"kind": "closed", "streams": count, "transport": transport}
    for count in streams[-2:]:
        yield {"kind": "live", "streams": count, "transport": transports[0]}
    for rate in rates:
        yield {"kind": "open", "rate": rate, "transport": transports[0]}
