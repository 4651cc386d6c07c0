"""Larger machines than this one: scenarios, their assumptions, and what they would serve."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from cantata_bench.results import BenchRun, Frozen
from cantata_bench.simulator.scaling import replicas_table, scale, scale_table
from cantata_bench.simulator.system import System, build_system

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
    """Those that ship with the package."""
    listed = yaml.safe_load(_SCENARIOS.read_text(encoding="utf-8"))
    return [Scenario.model_validate(one) for one in listed]


def plan_text(run: BenchRun | None) -> str:
    """Each scenario in Markdown, and before them the machine of a measured run.

    Raises:
        ConfigError: the run lacks what a system is made of.
    """
    return "\n".join(_parts(run))


def _parts(run: BenchRun | None) -> Iterator[str]:
    if run is not None:
        here = Scenario(
            title=f"{run.machine.cores} cores, `{run.model}`, as measured {run.began[:10]}",
            assumptions=("step times and packets cost what that run measured",),
            listeners=_HERE,
            system=build_system(run),
        )
        yield _section(here)
    for scenario in scenarios():
        yield _section(scenario)


def _section(scenario: Scenario) -> str:
    system = scenario.system
    lines = "\n".join(f"- {assumption}" for assumption in scenario.assumptions)
    figures = (
        f"- a talker's step of n frames {_cost(system.talker.fixed_s, system.talker.frame_s)}, "
        f"a prompt {1000 * (system.prompt_s + system.prefill_s):.1f} ms, a decoder's batch of n "
        f"frames {_cost(system.decoder.fixed_s, system.decoder.frame_s)}, a packet "
        f"{1000 * system.packet_s:.2f} ms of the api process; {system.slots} slots a server"
    )
    if scenario.replicas:
        table = replicas_table(system, scenario.replicas, _SECONDS, _SEED)
    else:
        table = scale_table(scale(system, scenario.listeners, _SECONDS, _SEED))
    return f"## {scenario.title}\n\n{lines}\n{figures}\n\n{table}"


def _cost(fixed_s: float, frame_s: float) -> str:
    return f"{1000 * fixed_s:.1f} + {1000 * frame_s:.2f} n ms"
