"""A server that draws, measured beside diffusers' pipeline, in turns, on the same checkpoint."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

import httpx
import numpy as np

from cantata.config.plugins import list_embedded_models, locate
from cantata.contract.data.errors import ConfigError
from cantata.contract.data.pictures import ImageLimits
from cantata_bench.client import Target
from cantata_bench.images.client import (
    TIMEOUT_S,
    Cancelled,
    Together,
    draw,
    draw_and_leave,
    draw_together,
)
from cantata_bench.images.reference import Drawn, ReferenceJob, ReferenceProcess, reference
from cantata_bench.load import measured_load
from cantata_bench.machine import in_own_process
from cantata_bench.results import LoadSpec, LoadSummary
from cantata_bench.server import running_server
from cantata_bench.summary import summarize

PROMPTS = ("a red heart", "a green apple", "a cat face", "a house", "the sun", "a blue car")
MIXED_SCALES = (1.0, 0.5, 1.0, 1.5, 0.5, 1.0, 0.5, 1.0)
"""Sides of the mixed pictures, of the model's default."""
MIXED_STEPS = (20, 8, 20, 8, 20, 8, 8, 20)
CANCEL_AFTER_STEPS = 5
SPEECH = LoadSpec(kind="live", streams=8, texts="mixed", warm_up_s=3.0, seconds=20.0)
DRAWN_BESIDE = 2
"""Pictures at a time, beside speech."""


@dataclass(frozen=True, slots=True)
class Alone:
    """Pictures that are drawn one at a time."""

    ours_s: tuple[float, ...]
    theirs_s: tuple[float, ...]
    largest_difference: int
    """Largest difference of a pixel's value between the two, over all pictures."""

    @property
    def ratio(self) -> float:
        """Ours to theirs: the median of the rounds."""
        return statistics.median(o / t for o, t in zip(self.ours_s, self.theirs_s, strict=True))


@dataclass(frozen=True, slots=True)
class Mixed:
    """Several pictures of several sizes; a value for each round."""

    pictures: int
    ours_s: tuple[float, ...]
    theirs_s: tuple[float, ...]
    ours_mean_s: tuple[float, ...]
    """Mean latency, if all are asked for at once."""
    theirs_mean_s: tuple[float, ...]
    """Mean latency in diffusers, which draws one picture after another."""

    @property
    def speed(self) -> float:
        """Pictures a minute: ours to theirs."""
        return statistics.median(t / o for o, t in zip(self.ours_s, self.theirs_s, strict=True))

    @property
    def latency(self) -> float:
        """Mean latency: ours to theirs."""
        pairs = zip(self.ours_mean_s, self.theirs_mean_s, strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs)


@dataclass(frozen=True, slots=True)
class BesideSpeech:
    """Streams of speech without pictures, then with."""

    without: LoadSummary
    beside: LoadSummary
    pictures: int
    """Drawn meanwhile."""


@dataclass(frozen=True, slots=True)
class ImageFigures:
    """Everything that was measured."""

    model: str
    size: tuple[int, int]
    steps: int
    alone: Alone
    mixed: Mixed
    cancelled: tuple[Cancelled, ...]
    speech: BesideSpeech | None
    """None: no model that speaks ships with weights."""


def measure_images(
    model: str | None, rounds: int, folder: Path, tell: Callable[[str], None]
) -> ImageFigures:
    """Start a server and diffusers' pipeline, and measure both.

    Args:
        model: a plug-in's name or a checkpoint folder; None: the embedded model that draws.
        rounds: of everything.
        folder: takes the servers' output.
        tell: receives progress messages.

    Raises:
        ConfigError: no such model, or diffusers cannot load it.
        RuntimeError: a server did not start.
    """
    name = model or list_embedded_models()[-1]
    located = locate(name)
    if located.plugin.load_image_builder is None:
        raise ConfigError(f"model {name!r} does not draw")
    limits = located.plugin.load_image_builder(located.checkpoint).limits
    with ExitStack() as stack:
        server = stack.enter_context(
            running_server(folder / "images.log", options=("--model", name))
        )
        theirs = stack.enter_context(reference(str(located.checkpoint)))
        tell("one picture at a time")
        orders = _make_orders(limits, rounds)
        alone = asyncio.run(_measure_alone(server.url, theirs, orders))
        tell("mixed pictures at once")
        mixed = asyncio.run(_measure_mixed(server.url, theirs, _make_mixed_orders(limits), rounds))
        tell("a caller who leaves")
        cancelled = asyncio.run(_measure_leaving(server.url, orders))
    tell("speech beside pictures")
    speech = _measure_beside_speech(name, orders, folder)
    return ImageFigures(
        located.plugin.name,
        limits.default_size,
        limits.default_steps,
        alone,
        mixed,
        cancelled,
        speech,
    )


def _make_orders(limits: ImageLimits, number: int) -> list[ReferenceJob]:
    """Orders at the model's own size, steps and guidance."""
    width, height = limits.default_size
    return [
        ReferenceJob(
            PROMPTS[seed % len(PROMPTS)],
            width,
            height,
            limits.default_steps,
            seed,
            limits.default_guidance,
        )
        for seed in range(number)
    ]


def _make_mixed_orders(limits: ImageLimits) -> list[ReferenceJob]:
    """Other sizes and steps."""
    orders = _make_orders(limits, len(MIXED_SCALES))
    return [
        replace(
            order,
            width=_scale_side(order.width, scale, limits),
            height=_scale_side(order.height, scale, limits),
            steps=min(steps, limits.max_steps),
        )
        for order, scale, steps in zip(orders, MIXED_SCALES, MIXED_STEPS, strict=True)
    ]


def _scale_side(side: int, scale: float, limits: ImageLimits) -> int:
    return max(round(side * scale / limits.multiple) * limits.multiple, limits.min_side)


async def _measure_alone(
    url: str, theirs: ReferenceProcess, orders: Sequence[ReferenceJob]
) -> Alone:
    """Measure single pictures in turns, after one of each that does not count."""
    pairs: list[tuple[Drawn, Drawn]] = []
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT_S) as http:
        for order in (orders[0], *orders):
            ours = await draw(http, order)
            pairs.append((ours, await asyncio.to_thread(theirs.draw, order)))
    return Alone(
        tuple(ours.seconds for ours, _ in pairs[1:]),
        tuple(their.seconds for _, their in pairs[1:]),
        max(_measure_difference(ours, their) for ours, their in pairs),
    )


def _measure_difference(ours: Drawn, theirs: Drawn) -> int:
    pixels = [np.frombuffer(drawn.pixels, np.uint8).astype(np.int16) for drawn in (ours, theirs)]
    return int(np.abs(pixels[0] - pixels[1]).max())


async def _measure_mixed(
    url: str, theirs: ReferenceProcess, orders: Sequence[ReferenceJob], rounds: int
) -> Mixed:
    """Measure mixed pictures in turns: all at once here, one after another there. The first round
    does not count."""
    ours: list[Together] = []
    ends: list[list[float]] = []
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT_S) as http:
        for _ in range(1 + rounds):
            ours.append(await draw_together(http, orders))
            took = [(await asyncio.to_thread(theirs.draw, order)).seconds for order in orders]
            ends.append(np.cumsum(took).tolist())
    return Mixed(
        len(orders),
        tuple(one.seconds for one in ours[1:]),
        tuple(one[-1] for one in ends[1:]),
        tuple(statistics.fmean(one.each_s) for one in ours[1:]),
        tuple(statistics.fmean(one) for one in ends[1:]),
    )


async def _measure_leaving(url: str, orders: Sequence[ReferenceJob]) -> tuple[Cancelled, ...]:
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT_S) as http:
        return tuple([await draw_and_leave(http, order, CANCEL_AFTER_STEPS) for order in orders])


def _measure_beside_speech(
    name: str, orders: Sequence[ReferenceJob], folder: Path
) -> BesideSpeech | None:
    """Measure one server that speaks and draws."""
    speaking = list_embedded_models()[0]
    if speaking == name:
        return None
    options = ("--model", speaking, "--model", name)
    with running_server(folder / "images-and-speech.log", options=options) as server:
        target = Target(server.url, model=speaking)
        in_own_process(measured_load, SPEECH.model_copy(update={"seconds": 3.0}), target, False)
        without = _measure_speech(target)
        beside, pictures = asyncio.run(_measure_speech_beside(target, orders))
    return None if without is None or beside is None else BesideSpeech(without, beside, pictures)


def _measure_speech(target: Target) -> LoadSummary | None:
    report = in_own_process(measured_load, SPEECH, target, False)
    return summarize(report.records, report.audio_in_window_s / SPEECH.seconds)


async def _measure_speech_beside(
    target: Target, orders: Sequence[ReferenceJob]
) -> tuple[LoadSummary | None, int]:
    """Measure speech while pictures are drawn all the time."""
    drawn = 0

    async def keep_drawing(http: httpx.AsyncClient) -> None:
        nonlocal drawn
        for order in cycle(orders):
            await draw(http, order)
            drawn += 1

    async with httpx.AsyncClient(base_url=target.url, timeout=TIMEOUT_S) as http:
        drawing = [asyncio.create_task(keep_drawing(http)) for _ in range(DRAWN_BESIDE)]
        summary = await asyncio.to_thread(_measure_speech, target)
        counted = drawn
        for task in drawing:
            task.cancel()
        await asyncio.gather(*drawing, return_exceptions=True)
    return summary, counted
