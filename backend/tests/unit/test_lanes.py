"""Tests side by side: what stays together, what runs alone, and what the durations add up to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from durations import by_model
from lanes import (
    IN_PROCESS_VLLM,
    ON_OWN_SERVER,
    ON_SHARED_SERVER,
    WITH_TIMED_TESTS,
    choose_unit,
    get_unit,
    in_turn,
)
from tiers import scaled

ROOT = Path(__file__).parents[3]
MODULE = """
import os, time
from pathlib import Path

import pytest


def note(name):
    began = time.monotonic()
    time.sleep(0.02)
    line = f'["{{name}}", {{began}}, {{time.monotonic()}}, {{os.getpid()}}]\\n'
    with Path("{notes}").open("a") as file:
        file.write(line)


@pytest.mark.parametrize("number", range(8))
def test_beside_others(number):
    note("beside")


@pytest.mark.timed
@pytest.mark.parametrize("number", range(3))
def test_alone(number):
    note("alone")


def test_last():
    note("beside")
"""


ONE_TEST = """
import os, time
from pathlib import Path


def test_it():
    deadline_s = time.monotonic() + 60
    # None is left for another worker.
    while len(list(Path("{notes}").glob("beside-*"))) < {awaited}:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    Path(f"{notes}/{name}-{number}-{{os.getpid()}}").touch()
"""


def run_side_by_side(folder: Path, workers: int, passed: int) -> None:
    """Run the tests in a folder with this many workers; all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-p", "lanes"]
    path = os.pathsep.join([str(ROOT / "backend" / "tests"), *sys.path])
    ended = subprocess.run(
        [*command, "-n", str(workers), "--import-mode=importlib"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{passed} passed" in ended.stdout


@pytest.mark.parametrize(
    "together", [ON_SHARED_SERVER, ON_OWN_SERVER, WITH_TIMED_TESTS, IN_PROCESS_VLLM]
)
def test_files_that_share_something_are_one_unit(together: tuple[str, ...]) -> None:
    assert len({get_unit(f"{path}::test_it[1]") for path in together}) == 1
    own = "backend/tests/unit/test_step_time_model.py"
    assert get_unit(f"{own}::test_it") == own
    assert [path for path in together if not (ROOT / path).is_file()] == []


def test_units_that_wait_and_units_that_compute_take_turns() -> None:
    waiting, computing = ["e2e/a", "w"], [f"c{number}" for number in range(10)]
    order = in_turn(waiting, computing)
    assert order == ["c0", "e2e/a", *computing[1:8], "w", *computing[8:]]
    assert in_turn([], computing) == computing
    assert in_turn(waiting, []) == waiting


def test_the_last_worker_runs_servers_and_then_browsers_and_no_other_needs_to_wait() -> None:
    server, browser, model = "backend/tests/unit/api/a", "e2e/b", "models/c"
    shared = get_unit(ON_SHARED_SERVER[0])
    left = [browser, shared, model, server]
    assert choose_unit(left, is_last=True) == server
    assert choose_unit(left[:3], is_last=True) == browser
    assert choose_unit([shared, model], is_last=True) is None
    assert choose_unit(left, is_last=False) == browser
    assert choose_unit([server, model], is_last=False) == model
    assert choose_unit([server], is_last=False) == server


def test_while_a_timed_test_runs_no_other_does_nor_between_two_of_one_file(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    notes = tmp_path / "notes"
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = timed\n")
    for number in range(4):
        (tmp_path / f"test_{number}.py").write_text(MODULE.format(notes=notes))
    run_side_by_side(tmp_path, workers=3, passed=48)
    found = [json.loads(line) for line in notes.read_text().splitlines()]
    assert len({pid for *_, pid in found}) == 3
    alone = sorted((began, end) for name, began, end, _ in found if name == "alone")
    assert len(alone) == 12
    for first in range(0, 12, 3):
        began, end = alone[first][0], alone[first + 2][1]
        beside = [one for one in found if one[1] < end and began < one[2]]
        assert [name for name, *_ in beside] == ["alone"] * 3
        assert len({pid for *_, pid in beside}) == 1


@pytest.mark.parametrize(
    ("of_servers", "workers"), [(9, {"beside": 1, "computing": 3}), (0, {"computing": 3})]
)
def test_a_fourth_worker_runs_what_mostly_waits_and_nothing_else(
    tmp_path: Path, of_servers: int, workers: dict[str, int]
) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "pytest.ini").touch()
    notes = tmp_path / "notes"
    notes.mkdir()
    for name, folder, count, awaited in (
        ("beside", "backend/tests/unit/api", of_servers, 0),
        ("computing", "backend/tests/unit", 9, of_servers),
    ):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            module = ONE_TEST.format(notes=notes, name=name, number=number, awaited=awaited)
            (tmp_path / folder / f"test_{number}.py").write_text(module)
    run_side_by_side(tmp_path, workers=4, passed=of_servers + 9)
    ran = {(name, pid) for name, _, pid in (note.name.split("-") for note in notes.iterdir())}
    assert Counter(name for name, _ in ran) == workers
    assert len({pid for _, pid in ran}) == sum(workers.values())


def test_durations_add_up_by_model() -> None:
    tests = {
        "models/cantata_models/solo/tests/test_a.py::test_1": 2.0,
        "models/cantata_models/solo/tests/test_b.py::test_2": 3.0,
        "models/cantata_models/other/tests/test_a.py::test_1": 7.0,
        "backend/tests/unit/test_a.py::test_1": 11.0,
    }
    assert by_model(tests) == {"solo": 5.0, "other": 7.0}


def test_long_tests_have_a_short_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiers.LONG", False)
    assert scaled(2, 10) == 2
    monkeypatch.setattr("tiers.LONG", True)
    assert scaled(2, 10) == 10


CASES = """
import pytest

@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("case", range(7))
def test_each(case): pass

@pytest.mark.thorough
def test_again(): pass

def test_it(): pass
"""


@pytest.mark.parametrize(("options", "count"), [((), 9), (("--short",), 4)])
def test_a_short_run_leaves_out_what_repeats(
    options: tuple[str, ...], count: int, tmp_path: Path
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = thorough\n")
    (tmp_path / "test_cases.py").write_text(CASES)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tiers", *options],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "backend" / "tests"), *sys.path]),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert f"{count} passed" in ended.stdout, ended.stdout + ended.stderr
