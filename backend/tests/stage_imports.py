"""Side by side (`pytest -n 4`), a worker's fork server imports what stages of every kind need.

WHY: the first service of a process decides what its fork server imports. After one that only draws,
every talker would import vLLM by itself, which takes four CPU seconds.
"""

from __future__ import annotations

import pytest

from cantata.config import KINDS
from cantata.ipc import fork_server


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    starts_stages = item.get_closest_marker("integration") or item.get_closest_marker("e2e")
    if hasattr(item.config, "workerinput") and starts_stages:
        fork_server.complete([kind.imports for kind in KINDS.values() if kind.imports])
