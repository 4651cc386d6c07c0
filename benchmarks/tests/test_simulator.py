"""The simulator: virtual time, and its predictions for systems whose figures are known."""

from __future__ import annotations

import asyncio
from functools import cache

import pytest
from made_up import SYSTEM, made_up_run

from cantata_bench.results import LoadSpec, LoadSummary
from cantata_bench.simulator.check import check, check_table
from cantata_bench.simulator.loads import Prediction, run_virtually, simulate
from cantata_bench.simulator.plan import replicas_table, scale, scale_table, scenarios
from cantata_bench.simulator.system import SimulatedStepCost, System, build_system, fit


def predict(system: System, **spec: object) -> Prediction:
    fields = {"kind": "closed", "warm_up_s": 2.0, "seconds": 10.0, **spec}
    return simulate(system, LoadSpec.model_validate(fields))


def said(system: System, **spec: object) -> LoadSummary:
    summary = predict(system, **spec).summary
    assert summary is not None
    return summary


def test_an_hour_passes_in_a_moment() -> None:
    async def hour() -> float:
        loop = asyncio.get_running_loop()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(600):
                await asyncio.Event().wait()
        await asyncio.sleep(3000)
        return loop.time()

    # Were it to wait, this test's own limit would end it.
    assert run_virtually(hour()) == pytest.approx(3600)


def test_a_simulation_that_cannot_advance_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="waits for nothing"):
        run_virtually(asyncio.Event().wait())


def test_alone_the_first_packet_takes_the_sum_of_its_parts() -> None:
    parts = (
        SYSTEM.text_s,
        SYSTEM.prompt_s,
        SYSTEM.talker.seconds(1) + SYSTEM.prefill_s,
        SYSTEM.decoder.seconds(1),
        SYSTEM.packet_s,
    )
    summary = said(SYSTEM, streams=1)
    assert summary.ttfp.p50 == pytest.approx(sum(parts), rel=0.01)
    assert summary.continuous[0] == 1.0
    # One step after the other, each of them a frame.
    assert summary.throughput_x == pytest.approx(0.08 / SYSTEM.talker.seconds(1), rel=0.15)


def test_the_same_seed_says_the_same() -> None:
    assert predict(SYSTEM, kind="open", rate=6.0, seed=3) == predict(
        SYSTEM, kind="open", rate=6.0, seed=3
    )


def test_a_feasible_crowd_is_played_without_a_gap_and_the_rest_is_told_to_wait() -> None:
    summary = said(SYSTEM, kind="live", streams=60, seconds=20.0)
    assert summary.continuous[0] == 1.0
    assert summary.refusals > 0


NOISY = SYSTEM.model_copy(
    update={
        "talker": SimulatedStepCost(fixed_s=0.013, frame_s=0.0008),
        "prompt_s": 0.016,
        "noise": 0.4,
    }
)
"""Half as fast, with prompts as dear as steps, and never the same twice."""
SYSTEMS = {"steady": SYSTEM, "noisy": NOISY}


@cache
def measure_room(name: str) -> LoadSummary:
    """As many as have room."""
    return said(SYSTEMS[name], streams=16, seconds=20.0)


@pytest.mark.parametrize("kind", ["closed", "live", "reconnecting"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_in_a_stampede_those_who_are_admitted_hear_no_gap(name: str, kind: str) -> None:
    room, system = measure_room(name), SYSTEMS[name]
    crowd = said(system, kind=kind, streams=48, arrive_within_s=2.0, retry_s=1.0, seconds=20.0)
    assert crowd.refusals > 0
    assert crowd.continuous[0] >= 0.995
    assert crowd.continuous[1] == 1.0
    assert crowd.throughput_x >= 0.9 * room.throughput_x


def test_a_start_on_a_busy_machine_is_soon_forgotten() -> None:
    """One client alone is never rejected, and a burst is served as if nothing had happened."""
    busy = SYSTEM.model_copy(update={"busy_start": 30.0})
    alone = said(busy, streams=1)
    assert alone.refusals == 0
    crowd, usual = (said(system, streams=16) for system in (busy, SYSTEM))
    assert crowd.throughput_x >= 0.9 * usual.throughput_x
    assert crowd.refusals == usual.refusals == 0


def test_admission_follows_the_step_times() -> None:
    """Twenty times slower, only a few are admitted, and they have no gaps."""
    slow = SYSTEM.model_copy(update={"talker": SimulatedStepCost(fixed_s=0.02, frame_s=0.01)})
    summary = said(slow, kind="live", streams=16, seconds=30.0)
    assert summary.refusals > 0
    assert summary.throughput_x < 0.08 / 0.01


def test_more_servers_serve_more() -> None:
    one, four = (
        said(SYSTEM.model_copy(update={"servers": servers}), kind="live", streams=48, retry_s=1.0)
        for servers in (1, 4)
    )
    assert one.refusals > 0
    assert four.refusals == 0
    assert four.throughput_x > one.throughput_x
    assert four.ttfp.p95 < one.ttfp.p95


@pytest.mark.thorough
def test_edges_that_are_told_places_do_as_well_as_a_balancer_that_knows_all() -> None:
    four = SYSTEM.model_copy(update={"servers": 4})
    crowd = {"kind": "live", "streams": 60, "retry_s": 1.0, "seconds": 20.0}
    known, told = (said(system, **crowd) for system in (four, four.model_copy(update={"edges": 2})))
    assert told.continuous[0] == 1.0
    assert told.throughput_x == pytest.approx(known.throughput_x, rel=0.05)
    assert told.refusals <= known.refusals


@pytest.mark.thorough
def test_who_gets_no_place_waits_at_the_edge_and_then_is_rejected() -> None:
    behind = SYSTEM.model_copy(update={"servers": 2, "edges": 1})
    summary = said(behind, streams=100, seconds=20.0)
    assert summary.refusals > 0
    assert summary.continuous[0] == 1.0
    assert summary.ttfp.p99 < 8.5
    few = said(behind, streams=2, seconds=20.0)
    assert few.refusals == 0
    assert few.throughput_x == pytest.approx(2 * said(SYSTEM, streams=1).throughput_x, rel=0.1)


def test_news_of_places_that_takes_long_does_not_oversell_them() -> None:
    """Two edges may both order the last place; one of them is refused and waits."""
    far = SYSTEM.model_copy(update={"servers": 3, "edges": 2, "link_s": 0.2})
    summary = said(far, kind="live", streams=80, retry_s=1.0, seconds=20.0)
    assert summary.continuous[0] == 1.0


@pytest.mark.thorough
def test_two_replicas_take_twice_the_listeners() -> None:
    slow = {"talker": SimulatedStepCost(fixed_s=0.02, frame_s=0.008), "edges": 1}
    system = SYSTEM.model_copy(update=slow)
    lines = replicas_table(system, [1, 2], seconds=15.0, seed=0).splitlines()
    one, two = (int(line.split("|")[2]) for line in lines[2:4])
    assert one > 1
    assert 1.7 * one <= two <= 2.3 * one


def test_a_fit_finds_the_line() -> None:
    run = made_up_run()
    assert run.floor is not None
    found = fit(run.floor.steps, "talker")
    assert found.fixed_s == pytest.approx(SYSTEM.talker.fixed_s)
    assert found.frame_s == pytest.approx(SYSTEM.talker.frame_s)


def test_a_run_gives_its_system() -> None:
    found = build_system(made_up_run())
    assert found.prefill_s == pytest.approx(SYSTEM.prefill_s)
    assert (found.slots, found.max_batch_frames, found.processors) == (16, 32, 2)
    assert found.characters_per_s == pytest.approx(15.0)
    assert found.packet_s == pytest.approx((0.6 - 12 * SYSTEM.text_s) / 300)


def test_a_check_puts_measured_and_predicted_side_by_side() -> None:
    run = made_up_run()
    checked = check(run)
    assert [one.measured for one in checked] == list(run.loads)
    assert checked[0].error("ttfp_p50") is not None
    assert check_table(checked).count("\n") == 4 + len(run.loads)


def test_every_scenario_is_named_with_its_assumptions_and_can_be_simulated() -> None:
    found = scenarios()
    assert found
    for scenario in found:
        assert scenario.assumptions
        assert scenario.listeners or scenario.replicas
    smallest = found[0].listeners[:1]
    assert "100%" in scale_table(scale(found[0].system, smallest, seconds=30.0, seed=0))
