"""Runs a fault's tests in a scratch checkout and reads what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from .mutant import Mutant

PACKAGES = ("backend", "benchmarks", "frontend", "models")
SERVER_VARIABLE = "CANTATA_URL"
"""A server that runs already has no fault."""
TRIAL_TIMEOUT_S = 900.0
MESSAGE_CHARACTERS = 140
ATTEMPTS = 2
"""A trial that could not run, such as when a server was not ready in time, runs once more."""


class Verdict(StrEnum):
    """The verdict of one trial."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    """Every test passed."""
    NOT_RUN = "not run"
    """No test failed, but not every one passed: an error in a fixture, or a skip."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What the tests say about one fault."""

    name: str
    verdict: Verdict
    test: str = ""
    """The test that failed first."""
    message: str = ""
    """The first line of its failure."""

    def as_json(self) -> dict[str, Any]:
        """The trial for the file of results."""
        return asdict(self)


@contextmanager
def scratch_checkout(root: Path, folder: Path) -> Iterator[Path]:
    """A git worktree of the working tree's tracked files as they are now."""
    _git(root, "worktree", "prune")  # of a run that was killed
    stashed = _git(root, "stash", "create").strip()
    _git(root, "worktree", "add", "--force", "--detach", str(folder), stashed or "HEAD")
    try:
        yield folder
    finally:
        _git(root, "worktree", "remove", "--force", str(folder))


def try_out(mutant: Mutant, checkout: Path) -> Trial:
    """Put the fault in, run its tests, take it out again."""
    mutant.apply(checkout)
    try:
        for _ in range(ATTEMPTS):
            trial = _run(mutant, checkout)
            if trial.verdict is not Verdict.NOT_RUN:
                break
        return trial
    finally:
        _git(checkout, "checkout", "--", mutant.file)


def _run(mutant: Mutant, checkout: Path) -> Trial:
    report = checkout / "artifacts" / "mutant.xml"
    report.unlink(missing_ok=True)
    options = ["-x", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    path = os.pathsep.join(str(checkout / package) for package in PACKAGES)
    environment = {k: v for k, v in os.environ.items() if k != SERVER_VARIABLE}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *mutant.tests],
            cwd=checkout,
            env=environment | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=TRIAL_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return Trial(mutant.name, Verdict.NOT_RUN, message=f"no end after {TRIAL_TIMEOUT_S:g} s")
    if not report.exists():
        return Trial(mutant.name, Verdict.NOT_RUN, message=done.stdout[-MESSAGE_CHARACTERS:])
    return read_report(mutant.name, report)


def read_report(name: str, report: Path) -> Trial:
    """A fault is caught if a test fails; an error in a fixture does not count."""
    cases = list(ElementTree.parse(report).iter("testcase"))
    for case in cases:
        if (failure := case.find("failure")) is not None:
            message = " ".join((failure.get("message") or "").split())
            return Trial(name, Verdict.CAUGHT, _node(case), message[:MESSAGE_CHARACTERS])
    for case in cases:
        for kind in ("error", "skipped"):
            if (found := case.find(kind)) is not None:
                message = f"{kind}: {' '.join((found.get('message') or '').split())}"
                return Trial(name, Verdict.NOT_RUN, _node(case), message[:MESSAGE_CHARACTERS])
    if not cases:
        return Trial(name, Verdict.NOT_RUN, message="no test ran")
    return Trial(name, Verdict.SURVIVED)


def _node(case: ElementTree.Element) -> str:
    module = (case.get("classname") or "").rsplit(".", 1)[-1]
    return f"{module}::{case.get('name')}"


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout
