"""Measures a model: its bare stages in one process, then a server with as many slots as requests
come at once."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from cantata.config import Dtype
from cantata.config.plugins import LocatedModel, load_plugins, locate
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.plugin import ModelPlugin
from cantata.pipeline.plan import plan_service
from cantata_bench.baseline import BarePipeline, load_stages
from cantata_bench.first_packet import TIMEOUT_S, deployment_file, serving
from cantata_bench.machine import in_own_process, private_bytes
from cantata_bench.model_page.work import (
    PageWork,
    Rounds,
    SpeechWork,
    Taken,
    collect_rounds,
    pictures_within,
)
from cantata_bench.noise_guard import observed


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


Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model is measured."""

    at_once: tuple[int, ...] = (1, 4, 8)
    """Requests at a time, and slots."""
    rounds: int = 3
    """Rounds of each load, after one that is not counted."""
    dtype: Dtype = "float32"
    frames: int = 40
    """Most frames of a speech request."""
    side: int = 256
    """Width and height of a picture in pixels."""
    steps: int = 8
    """Denoising steps of a picture."""


@dataclass(frozen=True, slots=True)
class LoadRow:
    """Figures for a number of requests at once."""

    at_once: int
    served: Rounds
    bare: Rounds
    private: Mapping[str, int]
    """Bytes of memory by process, each in no other process, of a server with as many slots."""
    disturbance: str
    """What else the machine did meanwhile; empty: nothing."""

    @property
    def share(self) -> float:
        """Served throughput as a part of the bare stages'."""
        return self.served.per_second / self.bare.per_second


@dataclass(frozen=True, slots=True)
class CheckpointFigures:
    """Figures of one checkpoint."""

    model: str
    what: str
    """Where the checkpoint's weights come from, and their size."""
    draws: bool
    settings: Settings
    rows: tuple[LoadRow, ...]


def measure(model: str, settings: Settings, tell: Tell) -> CheckpointFigures:
    """Measure one checkpoint.

    Args:
        model: a checkpoint folder, or a model's name; of one without weights of its own, a tiny
            checkpoint of random weights is measured.
        settings: how.
        tell: receives progress messages.

    Raises:
        ConfigError: no such model, or it neither speaks nor draws.
        RuntimeError: a server did not start, or had no room for any request.
    """
    with _open_checkpoint(model) as (checkpoint, what):
        plugin = locate(checkpoint).plugin
        work = _work_for(plugin, checkpoint, settings)
        tell(f"{plugin.name}, {what}: the bare stages")
        most = max(settings.at_once)
        with tempfile.TemporaryDirectory() as folder, observed() as calm:
            file = deployment_file(checkpoint, Path(folder), slots=most)
            served = LoadedModel(checkpoint, file, settings.dtype)
            bare = in_own_process(bare_rounds, served, work, settings.at_once, settings.rounds)
        rows = []
        for at_once, alone in zip(settings.at_once, bare, strict=True):
            tell(f"{plugin.name}, {what}: a server, {at_once} at once")
            rows.append(_measure_row(checkpoint, work, at_once, alone, settings, calm.disturbance))
        draws = plugin.load_image_builder is not None
        return CheckpointFigures(plugin.name, what, draws, settings, tuple(rows))


def _measure_row(
    checkpoint: str,
    work: PageWork,
    at_once: int,
    bare: Rounds,
    settings: Settings,
    disturbance: str,
) -> LoadRow:
    with serving(checkpoint, slots=at_once, dtype=settings.dtype) as server:
        with observed() as calm:
            served = asyncio.run(ask_rounds(server.url, work, at_once, settings.rounds))
        private = private_bytes(server.pid)
    doubts = "; ".join(doubt for doubt in (disturbance, calm.disturbance) if doubt)
    return LoadRow(at_once, served, bare, private, doubts)


async def ask_rounds(url: str, work: PageWork, at_once: int, rounds: int) -> Rounds:
    """Ask a server for so many at once, several times, after a round that is not counted."""
    limits = httpx.Limits(max_connections=at_once)
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT_S, limits=limits) as http:
        consumed = [
            await asyncio.gather(*(work.ask(http) for _ in range(at_once)))
            for _ in range(1 + rounds)
        ]
    return collect_rounds(consumed[1:])


def _work_for(plugin: ModelPlugin, checkpoint: str, settings: Settings) -> PageWork:
    if plugin.load_builder is not None:
        return SpeechWork(settings.frames)
    if plugin.load_image_builder is not None:
        limits = plugin.load_image_builder(locate(checkpoint).checkpoint).limits
        return pictures_within(limits, settings.side, settings.steps)
    raise ConfigError(
        f"{plugin.name} answers; `python -m cantata_bench.answers` measures models that do"
    )


@contextmanager
def _open_checkpoint(model: str) -> Iterator[tuple[str, str]]:
    """The checkpoint to serve, and a description of it."""
    plugin = load_plugins().get(model)
    if plugin is None or plugin.embedded_checkpoint is not None:
        located = locate(model)
        yield model, f"{located.checkpoint.name}, {_describe_size(located.checkpoint)}"
        return
    if plugin.write_random_checkpoint is None:
        raise ConfigError(f"{model} has no weights of its own; name a checkpoint's folder")
    with tempfile.TemporaryDirectory() as folder:
        plugin.write_random_checkpoint(Path(folder))
        yield folder, f"tiny, random, {_describe_size(Path(folder))}"


def _describe_size(checkpoint: Path) -> str:
    total = sum(path.stat().st_size for path in checkpoint.rglob("*") if path.is_file())
    return f"{total / 1e6:.0f} MB"
