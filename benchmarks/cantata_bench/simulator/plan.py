"""Larger machines than this one: scenarios, their assumptions, and how many live listeners they
would serve, and what the last of them would hear."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from cantata_bench.results import BenchRun, Frozen, LoadSpec
from cantata_bench.simulator.loads import Prediction, simulate
from cantata_bench.simulator.system import System, build_system
from cantata_bench.tables import ms, percent, table

_FIRST_SOUND_S = 0.5


def scale(system: System, streams: Sequence[int], seconds: float, seed: int) -> list[Prediction]:
    """Live listeners, each of which requests its next text when the last has been played."""
    return [
        simulate(
            system,
            LoadSpec(kind="live", streams=count, warm_up_s=10.0, seconds=seconds, seed=seed),
        )
        for count in streams
    ]


def max_listeners(system: System, seconds: float, seed: int) -> Prediction:
    """The largest number of live listeners, in steps of 2%, of whom nobody is rejected, nobody
    hears a gap, and 99 of 100 hear the first sound within half a second."""
    least, most = 1, 2 * system.slots * system.servers
    best = scale(system, [least], seconds, seed)[0]
    while most - least > max(1, least // 50):
        middle = (least + most) // 2
        found = scale(system, [middle], seconds, seed)[0]
        if _satisfies(found):
            least, best = middle, found
        else:
            most = middle
    return best


def replicas_table(system: System, counts: Sequence[int], seconds: float, seed: int) -> str:
    """A table with one line for each number of replicas: how many listeners it serves, against one
    replica's."""
    head = ("replicas", "listeners", "of one replica's, each", "TTFP p50 / p99, ms", "audio-s/s")
    lines, one = [], 0.0
    for count in counts:
        found = max_listeners(system.model_copy(update={"servers": count}), seconds, seed)
        assert found.summary is not None, "somebody listens"
        streams = found.spec.streams
        one = one or streams / count
        ttfp = found.summary.ttfp
        lines.append(
            (
                str(count),
                str(streams),
                percent(streams / count / one),
                f"{ms(ttfp.p50)} / {ms(ttfp.p99)}",
                f"{found.summary.throughput_x:.1f}",
            )
        )
    return table(head, lines)


def _satisfies(found: Prediction) -> bool:
    summary = found.summary
    return (
        summary is not None
        and not summary.refusals
        and summary.continuous[0] == 1.0
        and summary.ttfp.p99 <= _FIRST_SOUND_S
    )


def scale_table(predictions: Sequence[Prediction]) -> str:
    """A table with one line for each number of listeners."""
    head = ("listeners", "TTFP p50 / p95 / p99, ms", "C0", "C100", "audio-s/s", "refusals")
    lines = []
    for prediction in predictions:
        summary = prediction.summary
        if summary is None:
            lines.append((str(prediction.spec.streams), *["nothing spoken"] * 5))
            continue
        lines.append(
            (
                str(prediction.spec.streams),
                " / ".join(ms(t) for t in (summary.ttfp.p50, summary.ttfp.p95, summary.ttfp.p99)),
                percent(summary.continuous[0]),
                percent(summary.continuous[2]),
                f"{summary.throughput_x:.1f}",
                str(summary.refusals),
            )
        )
    return table(head, lines)


_SCENARIOS = Path(__file__).with_name("scenarios.yaml")
_SECONDS = 60.0
_SEED = 0
_HERE = (1, 8, 16, 32)


class Scenario(Frozen):
    """A system, where its figures are from, and how many listen."""

    title: str
    assumptions: tuple[str, ...]
    listeners: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()
    """Numbers of servers: how many listeners each could take is looked for."""
    system: System


def scenarios() -> list[Scenario]:
    """The scenarios that ship with the package."""
    listed = yaml.safe_load(_SCENARIOS.read_text(encoding="utf-8"))
    return [Scenario.model_validate(one) for one in listed]


def plan_text(run: BenchRun | None) -> str:
    """Each scenario in Markdown, and before them the machine of a measured run.

    Raises:
        ConfigError: the run lacks what a system is made of.
    """
    return "\n".join(_list_parts(run))


def _list_parts(run: BenchRun | None) -> Iterator[str]:
    if run is not None:
        here = Scenario(
            title=f"{run.machine.cores} cores, `{run.model}`, as measured {run.began[:10]}",
            assumptions=("step times and packets cost what that run measured",),
            listeners=_HERE,
            system=build_system(run),
        )
        yield _write_section(here)
    for scenario in scenarios():
        yield _write_section(scenario)


def _write_section(scenario: Scenario) -> str:
    system = scenario.system
    lines = "\n".join(f"- {assumption}" for assumption in scenario.assumptions)
    figures = (
        f"- a talker's step of n frames "
        f"{_format_cost(system.talker.fixed_s, system.talker.frame_s)}, "
        f"a prompt {1000 * (system.prompt_s + system.prefill_s):.1f} ms, "
        f"a decoder's batch of n frames "
        f"{_format_cost(system.decoder.fixed_s, system.decoder.frame_s)}, a packet "
        f"{1000 * system.packet_s:.2f} ms of the api process; {system.slots} slots a server"
    )
    if scenario.replicas:
        table = replicas_table(system, scenario.replicas, _SECONDS, _SEED)
    else:
        table = scale_table(scale(system, scenario.listeners, _SECONDS, _SEED))
    return f"## {scenario.title}\n\n{lines}\n{figures}\n\n{table}"


def _format_cost(fixed_s: float, frame_s: float) -> str:
    return f"{1000 * fixed_s:.1f} + {1000 * frame_s:.2f} n ms"
