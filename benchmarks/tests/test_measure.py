"""A run against a server that is there already, from the command line to its files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from live_server import Server
from made_up import made_up_run
from typer.testing import CliRunner

from cantata_bench.cli import app
from cantata_bench.measure import ladder, stampede
from cantata_bench.results import BenchRun, LoadSpec
from cantata_bench.server import free_port


def test_a_ladder_has_every_level_over_every_transport() -> None:
    specs = ladder([1, 8, 16], [2.0], ["websocket", "http"], LoadSpec(kind="closed", seed=7))
    assert [spec.title for spec in specs] == [
        "closed 1, websocket, mixed",
        "closed 8, websocket, mixed",
        "closed 16, websocket, mixed",
        "closed 1, http, mixed",
        "closed 8, http, mixed",
        "closed 16, http, mixed",
        "live 8, websocket, mixed",
        "live 16, websocket, mixed",
        "open 2/s, websocket, mixed",
    ]
    assert {spec.seed for spec in specs} == {7}


def test_a_stampede_is_three_times_what_has_room_in_every_kind_of_listener() -> None:
    specs = stampede(32, LoadSpec(kind="closed", seed=7))
    assert [spec.title for spec in specs] == [
        "closed 96 within 2 s, websocket, mixed",
        "live 96 within 2 s, websocket, mixed",
        "reconnecting 96 within 2 s, websocket, mixed",
    ]
    assert {spec.retry_s for spec in specs} == {1.0}


@pytest.mark.thorough
async def test_a_server_elsewhere_is_measured_by_its_url(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cantata_bench.interleave.wait_for_calm", lambda: None)  # no figure matters
    command = [
        "--url", server.url, "--streams", "2", "--rate", "0", "--transport", "http",
        "--texts", "short", "--seconds", "1", "--warm-up", "0", "--long-minutes", "0",
        "--no-stampede", "--voice", "ben", "--folder", str(tmp_path),
    ]  # fmt: skip
    result = await asyncio.to_thread(CliRunner().invoke, app, command)
    assert result.exit_code == 0, result.output
    run = BenchRun.model_validate_json((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert [load.spec.title for load in run.loads] == [
        "closed 2, http, short",
        "live 2, http, short",
    ]
    assert all(load.summary and load.summary.spoken for load in run.loads)
    assert {r.voice for r in server.service.solo.counts.requests} == {"ben"}
    assert "closed 2, http, short" in (tmp_path / "bench.md").read_text(encoding="utf-8")
    assert "closed 2, http, short: TTFP" in result.output


@pytest.mark.parametrize("scheme", ["http://127.0.0.1", "nonsense"])
def test_a_server_that_is_not_there_is_said_so(tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}:{free_port()}"
    result = CliRunner().invoke(app, ["--url", url, "--folder", str(tmp_path)])
    assert result.exit_code == 1
    assert url in result.output


def test_a_run_can_be_checked_scaled_and_gated(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(made_up_run().model_dump_json())
    for command, expected in (
        (["check", str(path)], "Measured / predicted"),
        (["scale", str(path), "1", "4", "--seconds", "10"], "| 4 |"),
        (["gate", str(path), "--margin", "2"], ""),
    ):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        assert expected in result.output
    refused = CliRunner().invoke(app, ["gate", str(path), "--margin", "0"])
    assert refused.exit_code == 1
    assert "TTFP p50 alone / bare first packet: 2.21, wanted at most 2" in refused.output


def test_what_was_disturbed_neither_passes_nor_fails_the_gate(tmp_path: Path) -> None:
    run = made_up_run()
    assert run.floor is not None
    stolen = "the hypervisor took 20% of the CPU"
    floor = run.floor.model_copy(update={"disturbance": stolen})
    path = tmp_path / "run.json"
    path.write_text(run.model_copy(update={"floor": floor}).model_dump_json())
    result = CliRunner().invoke(app, ["gate", str(path), "--margin", "0"])
    assert "TTFP p50 alone / bare first packet: 2.21" not in result.output
    said = f"not measured: TTFP p50 alone / bare first packet (the bare model: {stolen})"
    assert said in result.output
    assert "not measured: TTFP p95 at 16 closed / at 1" in result.output  # its client was behind
    assert result.exit_code == 0, result.output
    assert ", 0 missed, " in result.output


@pytest.mark.parametrize("content", ["{}", "no JSON", '{"version": 1, "colour": "red"}'])
def test_what_is_not_a_run_is_rejected(tmp_path: Path, content: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)
    result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 1
    assert "not the bench.json of a run" in result.output
