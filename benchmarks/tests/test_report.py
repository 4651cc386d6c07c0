"""What a run's report says, and that its JSON says the same when read again."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_up import load, made_up_run, record

from cantata_bench.goals import goals
from cantata_bench.plots import plot
from cantata_bench.results import BenchRun, LongText, ProcessUse
from cantata_bench.summary import summarize
from cantata_bench.tables import percent, put_between_markers, report


def test_a_run_survives_its_file() -> None:
    run = made_up_run()
    assert BenchRun.model_validate_json(run.model_dump_json()) == run


def test_the_report_has_figures_and_ratios() -> None:
    text = report(made_up_run())
    row = next(line for line in text.splitlines() if line.startswith("| closed 16"))
    assert "client behind" in row
    assert row.endswith("| 36.0 | 11.0 | 0.90 |")  # 200 ms over 18.1; 36 over 40
    assert "`async_chunk: false`" in text
    assert "busy" not in text


def test_a_busy_machine_is_marked() -> None:
    run = made_up_run()
    busy = run.machine.model_copy(update={"load_average": 1.5})
    assert "busy" in report(run.model_copy(update={"machine": busy}))


def test_one_stream_that_runs_dry_is_never_rounded_away() -> None:
    assert percent(9999 / 10000) == "<100%"
    assert percent(1.0) == "100%"


def test_a_summary_counts_outcomes_and_continuity() -> None:
    dry = record(underruns_s=(0.2, 0.1, 0.0, 0.0))
    refused = record(outcome="refused", refusals=3)
    found = summarize([record(), record(), dry, refused], 5.0)
    assert found is not None
    assert (found.spoken, found.refused, found.refusals) == (3, 1, 3)
    assert found.continuous == pytest.approx((2 / 3, 2 / 3, 1.0, 1.0))
    assert found.underrun_max_s == 0.2
    assert summarize([refused], 0.0) is None


def test_the_report_tells_where_first_packets_time_goes() -> None:
    assert "Where first packets" not in report(made_up_run())
    records = [record(0.04, timeline={"talker": t, "decoder": 0.005}) for t in (0.02, 0.03)]
    quick = load(1, 0.04, 10.0).model_copy(update={"summary": summarize(records, 10.0)})
    text = report(made_up_run().model_copy(update={"loads": (quick,)}))
    assert "| load | talker | decoder | elsewhere |" in text
    assert "| closed 1, websocket, mixed | 25 / 30 | 5.0 / 5.0 | 10 / 14 |" in text


def test_goals_are_ratios_and_say_which_are_met() -> None:
    run = made_up_run()
    met = {goal.name: goal.met for goal in goals(run)}
    assert met["throughput at 16 / bare loop"]
    assert met["TTFP p50 streaming / batch mode, mixed"]
    assert not met["TTFP p50 alone / bare first packet"]  # 40 ms over 18.1
    assert not met["TTFP p95 at 16 closed / at 1"]
    slightly = next(goal for goal in goals(run) if goal.name == "TTFP p95 at 16 closed / at 1")
    assert slightly.met_within(0.3)
    assert not slightly.met_within(0.2)


def test_a_stampede_is_held_to_what_the_admitted_hear_unless_the_client_was_late() -> None:
    calm = load(24, 1.0, 17.0, arrive_within_s=2.0)
    calm = calm.model_copy(update={"client": load(1, 0.1, 1.0).client})
    late = load(24, 1.0, 17.0, arrive_within_s=2.0, kind="live")
    run = made_up_run().model_copy(update={"loads": (load(8, 0.1, 20.0), calm, late)})
    found = {goal.name: goal for goal in goals(run) if "within 2 s" in goal.name}
    title = "closed 24 within 2 s, websocket, mixed"
    share = f"throughput, {title} / closed 8, websocket, mixed"
    assert found[f"C0, {title}"].met
    assert not found[share].met
    assert found[share].found == pytest.approx(0.85)
    assert not found[f"C0, {title}"].doubt
    assert found["C0, live 24 within 2 s, websocket, mixed"].doubt


def test_the_long_text_is_held_to_flat_memory() -> None:
    small, large = (
        (ProcessUse(name="api", cpu_s=1.0, peak_rss_bytes=size << 20),) for size in (100, 120)
    )
    long_text = LongText(minutes=10, record=record(), processes_before=small, processes_after=large)
    run = made_up_run().model_copy(update={"long_text": long_text})
    met = {goal.name: goal.met for goal in goals(run)}
    assert not met["memory after the long text / after a minute"]
    assert "| api | 100.0 | 120.0 |" in report(run)


def test_only_what_stands_between_the_markers_changes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- x -->\nold\n<!-- end of x -->\nbelow\n")
    put_between_markers(page, "x", "new\n")
    assert page.read_text() == "above\n<!-- x -->\nnew\n<!-- end of x -->\nbelow\n"
    with pytest.raises(ValueError, match="end of y"):
        put_between_markers(page, "y", "new\n")


def test_a_run_has_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot(made_up_run(), tmp_path / "bench.png")
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")
    bare = made_up_run().model_copy(update={"floor": None, "loads": (load(1, 0.1, 2.0),)})
    plot(bare, tmp_path / "bench.png")
