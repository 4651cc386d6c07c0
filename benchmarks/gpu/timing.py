"""How long calls take, and what a graph in their place changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cantata.stages.common.graphs import ShapeGraphs

WARM_UPS = 3
MIN_CALLS, MAX_CALLS = 5, 200
BUDGET_S = 0.5
"""Seconds for one median, beyond the least number of calls."""
TINY_BUDGET_S = 0.05
"""Seconds for one median of a tiny checkpoint, whose times mean nothing."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of one call, from before Python starts it until the device has finished it."""

    median_ms: float
    p90_ms: float
    calls: int


@dataclass(frozen=True, slots=True)
class Graphed:
    """The call as a graph."""

    timing: Timing
    capture_s: float
    difference: float
    """The largest between its result and the plain call's, of the same inputs and state."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A plain call and its graph."""

    eager: Timing
    graph: Graphed | None
    """None: not on CUDA, or it cannot be captured."""
    graph_error: str | None


def timed(call: Callable[[], object], device: torch.device) -> Timing:
    """Call again and again; the first calls do not count."""
    for _ in range(WARM_UPS):
        call()
    _finish(device)
    took: list[float] = []
    end = time.perf_counter() + BUDGET_S
    while len(took) < MIN_CALLS or (len(took) < MAX_CALLS and time.perf_counter() < end):
        began = time.perf_counter()
        call()
        _finish(device)
        took.append(1000 * (time.perf_counter() - began))
    return Timing(float(np.median(took)), float(np.percentile(took, 90)), len(took))


def compared(
    function: Callable[..., torch.Tensor],
    graphs: ShapeGraphs,
    inputs: Sequence[torch.Tensor],
    device: torch.device,
    begin: Callable[[], None] = lambda: None,
) -> Compared:
    """Time a plain call of a function and, on CUDA, its graph.

    Args:
        function: what `graphs` captures.
        begin: puts its state back before results are compared.
    """
    with torch.inference_mode():
        eager = timed(lambda: function(*inputs), device)
        if device.type != "cuda":
            return Compared(eager, None, None)
        try:
            return Compared(eager, graphed(function, graphs, inputs, device, begin), None)
        except RuntimeError as error:
            return Compared(eager, None, str(error).splitlines()[0])


def graphed(
    function: Callable[..., torch.Tensor],
    graphs: ShapeGraphs,
    inputs: Sequence[torch.Tensor],
    device: torch.device,
    begin: Callable[[], None],
) -> Graphed:
    """Capture a function, see that the graph does the same, and time it; as `compared`.

    Raises:
        RuntimeError: a graph cannot hold it.
    """
    began = time.perf_counter()
    graphs.capture(*inputs)
    _finish(device)
    capture_s = time.perf_counter() - began
    begin()
    expected = function(*inputs).clone()
    begin()
    difference = float((graphs(*inputs) - expected).abs().max())
    return Graphed(timed(lambda: graphs(*inputs), device), capture_s, difference)


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
