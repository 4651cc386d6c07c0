"""Side by side (`pytest -n 3`), each worker's fork server imports what stages of every kind need.

WHY: the first service of a process decides what its fork server imports. After one that only draws,
every talker would import vLLM by itself, which takes four CPU seconds.
"""

from __future__ import annotations

import pytest

from cantata.config import KINDS
from cantata.engine import fork_server


def pytest_collection_finish(session: pytest.Session) -> None:
    starts_stages = any(
        item.get_closest_marker("integration") or item.get_closest_marker("e2e")
        for item in session.items
    )
    if hasattr(session.config, "workerinput") and starts_stages:
        fork_server.complete([kind.imports for kind in KINDS.values() if kind.imports])
