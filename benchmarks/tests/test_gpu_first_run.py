"""The first run on a card, here on a CPU with a tiny checkpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from cantata_models.qwen3_tts.random_checkpoint import TINY_LARGE, write_checkpoint
from gpu.arrivals import SEED, OpenRow, _summary, _TimedAnswer, arrival_times
from gpu.cli import main, run_part
from gpu.first_run import PARTS, with_defaults
from gpu.report import PartResult, markdown

SCRIPT = Path(__file__).parents[1] / "gpu" / "first_run.py"
NOT_THERE = ("vllm", "fastapi", "uvicorn", "pydantic", "httpx", "av")
"""What a borrowed machine may lack."""


def _run(tmp_path: Path, *options: str) -> dict[str, object]:
    for package in NOT_THERE:
        blocked = tmp_path / "blocked" / package
        blocked.mkdir(parents=True, exist_ok=True)
        (blocked / "__init__.py").write_text(f"raise ImportError('{package} is not here')\n")
    command = [sys.executable, str(SCRIPT), "--out", str(tmp_path / "out"), "--shape", "tiny"]
    command += ["--device", "cpu", "--checkpoint", str(tmp_path / "kept"), *options]
    ended = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "blocked")},
        capture_output=True,
        text=True,
        timeout=280,
        cwd=tmp_path,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found: dict[str, object] = json.loads((tmp_path / "out" / "gpu.json").read_text())["parts"]
    return found


@pytest.mark.thorough
@pytest.mark.integration
def test_it_runs_without_what_a_server_needs_and_keeps_its_checkpoint(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "kept", TINY_LARGE, "custom_voice", 0)
    before = (tmp_path / "kept" / "model.safetensors").stat().st_mtime_ns
    parts = _run(tmp_path, "--parts", "env,predictor,step,profile,open_loop")
    outcomes = {name: part["outcome"] for name, part in parts.items()}  # type: ignore[index]
    measured = ("env", "predictor", "step", "profile")
    assert outcomes == dict.fromkeys(measured, "measured") | {"open_loop": "skipped"}
    lines = (tmp_path / "out" / "profile.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert {row["step"] for row in rows} == {"predictor", "codec", "talker"}
    assert all(row["calls"] > 0 for row in rows)
    assert (tmp_path / "kept" / "model.safetensors").stat().st_mtime_ns == before


def test_a_part_does_not_begin_without_time(tmp_path: Path) -> None:
    options = ["--out", str(tmp_path), "--shape", "tiny", "--device", "cpu", "--parts", "env"]
    assert main([*options, "--total", "1"]) == 0
    parts = json.loads((tmp_path / "gpu.json").read_text())["parts"]
    assert (parts["env"]["outcome"], parts["env"]["reason"]) == ("skipped", "no time is left")


def test_what_is_given_takes_precedence() -> None:
    given = with_defaults(["--parts", "env"])
    assert given[:2] == ["--parts", ",".join(PARTS)]
    assert given[-4:-2] == ["--engine", "graphs"]
    assert given[-2:] == ["--parts", "env"]


def test_arrivals_depend_on_the_seed_alone() -> None:
    times = arrival_times(20.0, 60.0, SEED)
    assert times == arrival_times(20.0, 60.0, SEED) != arrival_times(20.0, 60.0, SEED + 1)
    assert times == sorted(times)
    assert 1000 < len(times) < 1400


def test_a_stream_that_stalls_is_counted_and_a_refused_one_is_not_heard() -> None:
    steady = _TimedAnswer([(0.02, 0.08), (0.09, 0.08)])
    stalled = _TimedAnswer([(0.04, 0.08), (0.5, 0.08)])
    row = _summary("open 1/s", [steady, stalled, _TimedAnswer([])], wall_s=2.0)
    assert (row.sent, row.spoken, row.refused, row.underruns) == (3, 2, 1, 1)
    assert row.ttfp_p50_ms == pytest.approx(30.0)
    assert row.audio_s_per_s == pytest.approx(0.16)
    page = markdown({}, {"open_loop": PartResult("measured", "", 1.0, [asdict(row)])})
    assert f"| open 1/s | {SEED} | 3 | 1 | 30.0 | 39.0 | 1 | 0.2 |" in page


@pytest.mark.thorough
@pytest.mark.integration
def test_open_loads_are_measured_where_vllm_runs(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "kept", TINY_LARGE, "custom_voice", 0)
    result = run_part("open_loop", checkpoint, "cpu", True, tmp_path)
    assert result.outcome == "measured", result.reason
    rows = [OpenRow(**row) for row in result.rows]
    assert [row.load for row in rows] == ["open 2/s", "closed 2"]
    assert all(row.spoken > 0 and row.ttfp_p50_ms for row in rows)
    assert (checkpoint / "server.log").exists()


@pytest.mark.thorough
@pytest.mark.integration
@pytest.mark.parametrize("part", ["serve", "open_loop"])
def test_a_server_without_vllm_is_measured(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = write_checkpoint(tmp_path / "kept", TINY_LARGE, "custom_voice", 0)
    hidden = tmp_path / "hidden" / "vllm"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('vllm is not here')\n")
    monkeypatch.setenv("PYTHONPATH", str(hidden.parent))
    result = run_part(part, checkpoint, "cpu", True, tmp_path, engine="graphs")
    assert result.outcome == "measured", result.reason
    assert result.rows
    assert all(row["spoken"] > 0 and row["ttfp_p50_ms"] for row in result.rows)
    assert "TorchKernels" in (checkpoint / "server.log").read_text()
