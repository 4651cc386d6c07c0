"""How long the tests took: each in `artifacts/durations.json`, and sums for the models' folders.

A new model may add a minute. Seconds differ between machines, so this reports and never fails.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

ARTIFACT = Path(__file__).parents[2] / "artifacts" / "durations.json"
MODELS = "models/cantata_models/"
MODEL_LIMIT_S = 60.0


class Durations:
    """Setup, call and teardown of each test, in whichever worker it ran."""

    def __init__(self) -> None:
        self.seconds = Counter[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration  # type: ignore[assignment]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        slowest = {test: round(seconds, 3) for test, seconds in self.seconds.most_common()}
        ARTIFACT.parent.mkdir(exist_ok=True)
        ARTIFACT.write_text(json.dumps(slowest, indent=1) + "\n", encoding="utf-8")
        for model, seconds in by_model(slowest).items():  # type: ignore[arg-type]
            more = " (more than the minute that a new model may add)"
            terminalreporter.write_line(
                f"tests of {model}: {seconds:.0f} s{more if seconds > MODEL_LIMIT_S else ''}"
            )


def by_model(seconds: dict[str, float]) -> dict[str, float]:
    """Sums by the folder of each model."""
    sums = Counter[str]()
    for test, of_test in seconds.items():
        if test.startswith(MODELS):
            sums[test.removeprefix(MODELS).split("/", 1)[0]] += of_test  # type: ignore[assignment]
    return dict(sums)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # workers leave the sum to the controlling process
        config.pluginmanager.register(Durations(), "durations of tests")
