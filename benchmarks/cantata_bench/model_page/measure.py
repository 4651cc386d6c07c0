"""Measures a model: its bare stages, then a server with as many slots as requests come at once."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from cantata.config import Dtype
from cantata.config.plugins import installed_plugins, locate
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.plugin import ModelPlugin
from cantata_bench.first_packet import TIMEOUT_S, deployment_file, serving
from cantata_bench.machine import in_own_process
from cantata_bench.model_page.bare import LoadedModel, bare_rounds
from cantata_bench.model_page.pictures import pictures_within
from cantata_bench.model_page.speech import Speech
from cantata_bench.model_page.work import PageWork, Rounds, collect_rounds
from cantata_bench.noise_guard import observed
from cantata_bench.processes import private_bytes

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
    """So many requests at once."""

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
class Figures:
    """Figures of one checkpoint."""

    model: str
    what: str
    """Where the checkpoint's weights come from, and their size."""
    draws: bool
    settings: Settings
    rows: tuple[LoadRow, ...]


def measure(model: str, settings: Settings, tell: Tell) -> Figures:
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
    with _checkpoint(model) as (checkpoint, what):
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
            rows.append(_row(checkpoint, work, at_once, alone, settings, calm.disturbance))
        draws = plugin.load_image_builder is not None
        return Figures(plugin.name, what, draws, settings, tuple(rows))


def _row(
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
        return Speech(settings.frames)
    if plugin.load_image_builder is not None:
        limits = plugin.load_image_builder(locate(checkpoint).checkpoint).limits
        return pictures_within(limits, settings.side, settings.steps)
    raise ConfigError(
        f"{plugin.name} answers; `python -m cantata_bench.answers` measures models that do"
    )


@contextmanager
def _checkpoint(model: str) -> Iterator[tuple[str, str]]:
    """The checkpoint to serve, and a description of it."""
    plugin = installed_plugins().get(model)
    if plugin is None or plugin.embedded_checkpoint is not None:
        located = locate(model)
        yield model, f"{located.checkpoint.name}, {_size(located.checkpoint)}"
        return
    if plugin.write_random_checkpoint is None:
        raise ConfigError(f"{model} has no weights of its own; name a checkpoint's folder")
    with tempfile.TemporaryDirectory() as folder:
        plugin.write_random_checkpoint(Path(folder))
        yield folder, f"tiny, random, {_size(Path(folder))}"


def _size(checkpoint: Path) -> str:
    total = sum(path.stat().st_size for path in checkpoint.rglob("*") if path.is_file())
    return f"{total / 1e6:.0f} MB"
