"""Figures of pictures: what a client takes from the server's answers, and the simulation."""

from __future__ import annotations

import base64
import io
import json

import httpx
import pytest
from PIL import Image

from cantata_bench.images.client import draw, draw_and_leave, draw_together
from cantata_bench.images.reference import ReferenceJob
from cantata_bench.images.simulated import (
    MEASURED_S,
    arrivals,
    by_plan,
    first_come,
    get_size,
    published_cost,
    simulate,
)

ORDER = ReferenceJob("a boat", 4, 2, 20, 7, 3.0)


def picture() -> str:
    file = io.BytesIO()
    Image.new("RGB", (4, 2), (9, 8, 7)).save(file, "png")
    return base64.b64encode(file.getvalue()).decode()


def answered(request: httpx.Request) -> httpx.Response:
    body = json.loads(request.content)
    assert body["size"] == "4x2"
    assert body["num_inference_steps"] == 20
    assert body["seed"] == 7
    return httpx.Response(200, json={"data": [{"b64_json": picture()}]})


async def test_a_picture_is_taken_as_pixels() -> None:
    transport = httpx.MockTransport(answered)
    async with httpx.AsyncClient(base_url="http://server", transport=transport) as http:
        assert (await draw(http, ORDER)).pixels == bytes([9, 8, 7] * 8)
        together = await draw_together(http, [ORDER] * 3)
    assert len(together.each_s) == 3
    assert together.seconds >= max(together.each_s)


async def test_one_leaves_after_some_steps_and_waits_until_nothing_is_held() -> None:
    events = [f'event: image_generation.progress\ndata: {{"step": {n}}}\n\n' for n in range(20)]
    held = iter([2, 1, 0])

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/health":
            counts = {"requests": next(held)}
            return httpx.Response(200, json={"stages": [{"counts": counts}, {"counts": {}}]})
        assert json.loads(request.content)["stream"] is True
        return httpx.Response(200, content="".join(events).encode())

    transport = httpx.MockTransport(answer)
    async with httpx.AsyncClient(base_url="http://server", transport=transport) as http:
        left = await draw_and_leave(http, ORDER, 5)
    assert left.freed_s > 0
    assert next(held, None) is None


def test_the_cost_of_the_published_shape_is_near_what_was_measured() -> None:
    cost = published_cost()
    for (side, pictures), seconds in MEASURED_S.items():
        assert cost.seconds(get_size(side, pictures)) == pytest.approx(seconds, rel=0.35)


@pytest.mark.parametrize(("utilization", "at_most"), [(0.5, 0.9), (0.8, 0.65), (0.95, 0.5)])
def test_the_plan_beats_first_come_first_served_the_more_the_busier(
    utilization: float, at_most: float
) -> None:
    cost = published_cost()
    jobs = arrivals(cost, utilization, 200, seed=1)
    ours, theirs = simulate(jobs, cost, by_plan), simulate(jobs, cost, first_come)
    assert ours.mean_s < at_most * theirs.mean_s
    assert ours.p95_s < theirs.p95_s
