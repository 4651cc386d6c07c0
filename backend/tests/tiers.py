"""Which tests run, and in which form.

`pytest --short`, which `make test` runs and so `.ci/run`, leaves out what shows only that other
tests are effective, what repeats them under other conditions (one more model, voice, format or
browser) and what maintainers alone use: trainings, measurements on GPUs. It also leaves out some
features whose only test takes many seconds: tensor parallel text models, most tabs of the Gradio
app, the edit of a picture in the page. `.ci/nightly` runs all of it. `make test-long` runs the full
form of long tests.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TypeVar

import pytest

T = TypeVar("T")
LONG = bool(os.environ.get("CANTATA_LONG"))
"""Set by `make test-long`."""


def scaled(short: T, full: T) -> T:
    """The amount of work in a test marked `long`."""
    return full if LONG else short


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--short",
        action="store_true",
        help="leave out tests marked `thorough`, or keep each one of so many",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a parametrized test, `every` counts its cases."""
    if not config.getoption("short"):
        return
    seen: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        marker = item.get_closest_marker("thorough")
        test = item.nodeid.partition("[")[0]
        every = marker.kwargs.get("every") if marker else 1
        (kept if every and seen[test] % every == 0 else left_out).append(item)
        seen[test] += 1
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)
