"""The plan of a denoiser's forwards: under simulated loads, with a clock of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.process.messages import ForwardCost
from cantata.scheduling.step_plan import (
    PATIENCE,
    JobView,
    OutputLengthEstimator,
    finish_times,
    plan,
)
from cantata_bench.images.simulated import by_plan, finished, first_come, get_size, simulate

H200 = ForwardCost(0.10, 2e-5, 9e-10)
"""About what one forward of 20 B parameters takes there."""
NO_FIXED_TIME = ForwardCost(0.0, 1e-3, 0.0)
MAX_TOKENS = 65_536


def job(
    name: str, side: int = 512, steps: int = 50, arrived_s: float = 0.0, **more: Any
) -> JobView:
    values = {"steps_left": steps} | more
    return JobView(name, get_size(side), steps=steps, arrived_s=arrived_s, **values)


def names(chosen: Sequence[JobView]) -> list[str]:
    return [one.request_id for one in chosen]


def planned(jobs: Sequence[JobView], now_s: float) -> Sequence[JobView]:
    return plan(jobs, H200, MAX_TOKENS, now_s)


def mixed_load(number: int, seconds: float, seed: int) -> list[JobView]:
    """Pictures of mixed sizes and steps that arrive by chance."""
    rng = np.random.default_rng(seed)
    arrivals = np.sort(rng.uniform(0, seconds, number))
    return [
        job(f"{n}", int(rng.choice([256, 512, 1024])), int(rng.choice([8, 28, 50])), float(at))
        for n, at in enumerate(arrivals)
    ]


def test_nothing_to_do() -> None:
    assert plan([], H200, MAX_TOKENS, 0.0) == ()


def text(name: str, reads: int, steps: int = 256, **more: Any) -> JobView:
    """That reads so many tokens in its next step and writes then, or has read them."""
    size = ForwardSize(reads, reads**2) if "later" in more else ForwardSize(1, reads)
    return replace(job(name, steps=steps, **more), size=size, writes=True)


def test_a_token_joins_the_steps_of_a_picture() -> None:
    """So a text goes on while a picture that is done sooner is drawn."""
    picture, writer = job("picture", 1024, steps=20), text("text", 5000, steps=3000)
    assert names(planned([writer, picture], 0.0)) == ["picture", "text"]


def test_what_a_text_reads_counts_once() -> None:
    """Its other steps are tokens, so it is soon done and goes first."""
    picture = job("picture", 1024, steps=100)
    reader = text("text", 5000, later=ForwardSize(1, 5000), arrived_s=1.0)
    assert names(planned([picture, reader], 1.0)) == ["text"]
    wrong = replace(reader, later=None)
    assert names(planned([picture, wrong], 1.0)) == ["picture"]


def test_small_pictures_share_a_forward_and_large_ones_do_not() -> None:
    small = [job(f"s{n}", 256) for n in range(6)]
    large = [job(f"l{n}", 1536) for n in range(6)]
    assert len(planned(small, 0.0)) > 1
    assert len(planned(large, 0.0)) == 1


def test_without_a_fixed_time_nothing_is_gained_by_sharing() -> None:
    jobs = [job(f"{n}", 256) for n in range(4)]
    assert len(plan(jobs, NO_FIXED_TIME, MAX_TOKENS, 0.0)) == 1


def test_a_longer_queue_shares_more() -> None:
    shared = [len(planned([job(f"{n}") for n in range(count)], 0.0)) for count in (2, 6, 16)]
    assert shared == sorted(shared)
    assert shared[-1] > shared[0]


def test_the_shortest_goes_first_whatever_its_size() -> None:
    jobs = [job("long", 1536), job("few steps", 1536, 2), job("small", 256, 50)]
    assert names(planned(jobs, 0.0))[0] == "few steps"


def test_a_near_deadline_goes_first_and_a_lost_one_delays_nobody() -> None:
    left_s = job("a").left_s(H200)
    near = job("near", deadline_s=1.2 * left_s)
    assert names(planned([job("short", 256, 2), near], 0.0))[0] == "near"
    lost = job("lost", deadline_s=0.5 * left_s)
    assert names(planned([job("short", 256, 2), lost], 0.0))[0] == "short"
    far = job("far", deadline_s=100 * left_s)
    assert names(planned([job("short", 256, 2), far], 0.0))[0] == "short"


def test_two_near_deadlines_go_by_their_slack() -> None:
    left_s = job("a").left_s(H200)
    jobs = [job("later", deadline_s=1.4 * left_s), job("sooner", deadline_s=1.1 * left_s)]
    assert names(planned(jobs, 0.0))[0] == "sooner"


def test_file_renders_take_what_is_left() -> None:
    render = job("render", 256, 2, batch=True)
    assert names(planned([render, job("live", 1536)], 0.0))[0] == "live"
    assert names(planned([render], 0.0)) == ["render"]


def test_groups_do_not_mix() -> None:
    jobs = [job("a", group="x"), job("b", group="y"), job("c", group="x")]
    assert names(planned(jobs, 0.0)) == ["a", "c"]


def test_a_forward_stays_within_its_memory_but_for_a_single_large_picture() -> None:
    small = [job(f"{n}", 256) for n in range(8)]
    limit = 2 * small[0].size.tokens
    assert len(plan(small, H200, limit, 0.0)) == 2
    assert names(plan([job("huge", 1536)], H200, limit, 0.0)) == ["huge"]


@pytest.mark.parametrize("seed", range(4))
def test_mean_latency_is_well_below_first_come_first_served(seed: int) -> None:
    jobs = mixed_load(60, seconds=300, seed=seed)
    ours, theirs = simulate(jobs, H200, by_plan), simulate(jobs, H200, first_come)
    assert ours.mean_s < 0.7 * theirs.mean_s


def test_small_ones_that_never_end_do_not_starve_a_large_one() -> None:
    """Small pictures alone take more time than there is."""
    large = job("large", 1536, 28)
    small = [job(f"{n}", 512, 28, arrived_s=1.5 * n) for n in range(200)]
    ended = finished([large, *small], H200, by_plan)
    assert ended["large"] < max(ended.values()) / 2
    assert ended["large"] < (2 * PATIENCE + 3) * large.work_s(H200)


def test_not_even_deadlines_starve_another() -> None:
    large = job("large", 1536, 28)
    work_s = job("any", 512, 28).work_s(H200)
    urgent = [
        job(f"{n}", 512, 28, arrived_s=0.9 * work_s * n, deadline_s=0.9 * work_s * n + 1.3 * work_s)
        for n in range(300)
    ]
    ended = finished([large, *urgent], H200, by_plan)
    assert ended["large"] < (2 * PATIENCE + 3) * large.work_s(H200)


def test_deadlines_that_can_be_kept_are_kept() -> None:
    """Half of the load has deadlines, with room."""
    jobs = [
        replace(one, deadline_s=one.arrived_s + 3 * one.work_s(H200) + 20) if n % 2 else one
        for n, one in enumerate(mixed_load(40, seconds=500, seed=7))
    ]
    ended = finished(jobs, H200, by_plan)
    late = [one for one in jobs if ended[one.request_id] > one.deadline_s]
    assert not late


@pytest.mark.parametrize("seed", range(4))
def test_the_forecast_is_what_happens(seed: int) -> None:
    """It counts runs of steps as one, so it may differ a little."""
    jobs = [replace(one, arrived_s=0.0) for one in mixed_load(10, seconds=1, seed=seed)]
    forecast, happened = finish_times(jobs, H200, MAX_TOKENS, 0.0), finished(jobs, H200, by_plan)
    assert forecast.keys() == happened.keys()
    last_s = max(happened.values())
    assert max(forecast.values()) == pytest.approx(last_s, rel=0.05)
    for name, at_s in happened.items():
        assert math.isclose(forecast[name], at_s, rel_tol=0.25, abs_tol=0.05 * last_s)


def test_it_follows_the_texts() -> None:
    usual = OutputLengthEstimator()
    before = usual.left(100_000)
    for _ in range(40):
        usual.record_length(20)
    assert usual.left(100_000) == 20 < before
    usual.record_length(120)
    assert 20 < usual.left(100_000) < 120


@pytest.mark.parametrize("most", [1, 2, 7])
def test_no_text_is_longer_than_it_may_be(most: int) -> None:
    assert OutputLengthEstimator().left(most) == most


def test_there_is_always_a_step_left() -> None:
    usual = OutputLengthEstimator()
    for _ in range(100):
        usual.record_length(0)
    assert usual.left(50) == 1
