"""A client that asks a server for pictures."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from PIL import Image

from cantata_bench.images.reference import Drawn, ReferenceJob

TIMEOUT_S = 600.0
COMPLETED = "image_generation.completed"
_POLL_S = 0.005


@dataclass(frozen=True, slots=True)
class Together:
    """Several pictures that were asked for at once."""

    seconds: float
    """Seconds until the last picture."""
    each_s: tuple[float, ...]
    """Seconds from each request to its picture."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A picture whose steps were shown, in seconds from its request."""

    first_s: float
    """Seconds until the first step."""
    whole_s: float


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A picture whose caller left."""

    step_s: float
    """Seconds between two of its steps."""
    freed_s: float
    """Seconds from the disconnect until no stage held anything."""


async def draw(http: httpx.AsyncClient, order: ReferenceJob) -> Drawn:
    """Request one picture.

    Raises:
        httpx.HTTPStatusError: the server rejected it.
    """
    began_s = time.perf_counter()
    response = await http.post("/v1/images/generations", json=_make_body(order))
    response.raise_for_status()
    seconds = time.perf_counter() - began_s
    file = base64.b64decode(response.json()["data"][0]["b64_json"])
    return Drawn(seconds, Image.open(io.BytesIO(file)).convert("RGB").tobytes())


async def draw_together(http: httpx.AsyncClient, orders: Sequence[ReferenceJob]) -> Together:
    """All at once."""
    began_s = time.perf_counter()
    drawn = await asyncio.gather(*(draw(http, order) for order in orders))
    return Together(time.perf_counter() - began_s, tuple(one.seconds for one in drawn))


async def draw_watched(http: httpx.AsyncClient, order: ReferenceJob) -> Watched:
    """Request one picture with the events of its steps.

    Raises:
        httpx.HTTPStatusError: the server rejected it.
        RuntimeError: it ended without a picture.
    """
    began_s = time.perf_counter()
    first_s: float | None = None
    body = _make_body(order) | {"stream": True, "stream_progress": True}
    async with http.stream("POST", "/v1/images/generations", json=body) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line.removeprefix("data: "))
            now_s = time.perf_counter() - began_s
            if event.get("step"):
                first_s = first_s or now_s
            if event.get("type") == COMPLETED:
                return Watched(first_s or now_s, now_s)
    raise RuntimeError("the server ended without a picture")


async def draw_and_leave(
    http: httpx.AsyncClient, order: ReferenceJob, after_steps: int
) -> Cancelled:
    """Leave after so many steps, and wait until the server is idle."""
    times_s: list[float] = []
    body = _make_body(order) | {"stream": True, "stream_progress": True}
    async with http.stream("POST", "/v1/images/generations", json=body) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if line.startswith("data: {") and json.loads(line.removeprefix("data: ")).get("step"):
                times_s.append(time.perf_counter())
            if len(times_s) > after_steps:
                break
    left_s = time.perf_counter()
    while await _is_held(http):  # noqa: ASYNC110
        await asyncio.sleep(_POLL_S)
    step_s = (times_s[-1] - times_s[0]) / (len(times_s) - 1)
    return Cancelled(step_s, time.perf_counter() - left_s)


async def _is_held(http: httpx.AsyncClient) -> bool:
    """Whether any stage holds a request."""
    stages = (await http.get("/health")).json()["stages"]
    return any(any(stage["counts"].values()) for stage in stages)


def _make_body(order: ReferenceJob) -> dict[str, Any]:
    return {
        "prompt": order.prompt,
        "size": f"{order.width}x{order.height}",
        "seed": order.seed,
        "num_inference_steps": order.steps,
        "true_cfg_scale": order.guidance,
    }
