"""Runs the same requests through a model's own stages, in one process and without a server."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cantata.config import Dtype
from cantata.config.plugins import LocatedModel
from cantata.contract.data.errors import ConfigError
from cantata.pipeline.plan import plan_service
from cantata_bench.baseline import BarePipeline, load_stages
from cantata_bench.model_page.work import PageWork, Rounds, Taken, collect_rounds


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model as the server has it too."""

    model: str
    """A model as `cantata serve --model` takes it."""
    deploy: Path
    dtype: Dtype


def bare_rounds(
    served: LoadedModel, work: PageWork, at_once: Sequence[int], rounds: int
) -> list[Rounds]:
    """Measure; in a process of its own, since it loads the model.

    Args:
        served: the model, with slots for the most requests.
        work: what is asked.
        at_once: requests at a time, one after the other.
        rounds: of each, after one that is not counted.
    """
    plan = plan_service(served.model, served.deploy, served.dtype)
    bare = load_stages(plan.located, plan.deployment)
    try:
        return [
            collect_rounds(
                [run_round(bare, plan.located, work, count) for _ in range(1 + rounds)][1:]
            )
            for count in at_once
        ]
    finally:
        bare.close()


def run_round(bare: BarePipeline, located: LocatedModel, work: PageWork, count: int) -> list[Taken]:
    """All at once, to the last one's end."""
    rate = max(stage.capacity.sample_rate or 0 for stage in bare.stages.values())
    ids = [f"bare-{number}" for number in range(count)]
    began = time.perf_counter()
    requests = work.built(located, ids)
    if len(requests) != count:
        raise ConfigError("a request of several pieces cannot be measured bare")
    for request in requests:
        bare.add(request)
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    amounts = {request.request_id: 0.0 for request in requests}
    while any(stage.has_work() for stage in bare.stages.values()):
        for chunk in bare.step():
            now_s = time.perf_counter() - began
            name = chunk.request_id
            if name not in first and work.begins(chunk.payload):
                first[name] = now_s
            last[name] = now_s
            amounts[name] += work.amount(chunk, rate)
    return [Taken(first[name], last[name], amounts[name]) for name in amounts]
