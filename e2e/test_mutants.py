"""The faults of `make mutants` still fit the code, and their tests exist."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .mutants.catalogue import MUTANTS
from .mutants.mutant import Mutant, Unfit
from .mutants.table import build_table
from .mutants.trial import Trial, Verdict, read_report

ROOT = Path(__file__).parents[1]
REPORT = """<testsuites><testsuite>{cases}</testsuite></testsuites>"""
CASE = '<testcase classname="e2e.test_x" name="test_y">{inner}</testcase>'


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_fault_has_its_place_in_the_code(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    changed = mutant.applied_to(text)
    assert changed != text
    if mutant.file.endswith(".py"):
        ast.parse(changed)


def test_every_fault_is_another_and_names_tests_that_exist() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 24
    assert len({(mutant.file, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)
    for node in {test for mutant in MUTANTS for test in mutant.tests}:
        path, _, name = node.partition("::")
        tests = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {name}(" in tests if name else "def test_" in tests, node


def test_a_place_that_is_gone_is_an_error() -> None:
    with pytest.raises(Unfit, match="0 times"):
        MUTANTS[0].applied_to("nothing")


@pytest.mark.parametrize(
    ("cases", "verdict"),
    [
        (CASE.format(inner='<failure message="AssertionError: no"/>'), Verdict.CAUGHT),
        (CASE.format(inner=""), Verdict.SURVIVED),
        (CASE.format(inner='<error message="no server"/>'), Verdict.NOT_RUN),
        (CASE.format(inner='<skipped message="not measured"/>'), Verdict.NOT_RUN),
        ("", Verdict.NOT_RUN),
    ],
)
def test_only_a_failed_test_catches_a_fault(tmp_path: Path, cases: str, verdict: Verdict) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT.format(cases=cases), encoding="utf-8")
    assert read_report("offset", report).verdict is verdict


def test_a_fault_that_survives_stands_out_in_the_table() -> None:
    trials = {
        "offset": Trial("offset", Verdict.SURVIVED),
        "wrap": Trial("wrap", Verdict.CAUGHT, "test_x::test_y", "AssertionError: a jump"),
    }
    table = build_table(MUTANTS, trials)
    assert "| `offset`: offset of 0.05 | **survived** |  |" in table
    assert "| `test_x::test_y` | a jump |" in table
    assert table.count("| not tried |") == len(MUTANTS) - len(trials)
    later = build_table(MUTANTS, {"wrap": Trial("wrap", Verdict.SURVIVED)}, table)
    assert "| `offset`: offset of 0.05 | **survived** |  |" in later, "it keeps what was found"
    assert "| `test_x::test_y` | a jump |" not in later
