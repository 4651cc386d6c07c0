"""The api is killed: its stages exit with it, whatever they are doing, and nothing remains."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cantata.api.server.listening import listen
from process_tree import find_descendants
from tiny_talker.checkpoint import save_tiny_checkpoint

pytestmark = pytest.mark.integration

GONE_WITHIN_S = 2.0
"""The stages' own processor time: a busy host gives them little per second."""
_PATIENCE_S = 60.0
_LOOK_S = 0.02


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("loaded", [True, False], ids=["ready", "loading"])
def test_stages_end_with_the_api(tmp_path: Path, loaded: bool) -> None:
    checkpoint, temporary = tmp_path / "checkpoint", tmp_path / "tmp"
    checkpoint.mkdir()
    temporary.mkdir()
    save_tiny_checkpoint(checkpoint)
    with subprocess.Popen(
        [sys.executable, "-m", "tiny_talker.lonely", checkpoint],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as api:
        assert api.stdout is not None
        try:
            port = int(api.stdout.readline())
            if loaded:
                assert api.stdout.readline() == "ready\n"
            wait_until_named(api.pid)
            family = psutil.Process(api.pid).children(recursive=True)
        finally:
            api.kill()
    assert len(family) >= 2
    assert processor_time_until_gone(family) < GONE_WITHIN_S
    listen("127.0.0.1", port).close()
    assert not list(temporary.glob("cantata*"))


def wait_until_named(api: int) -> None:
    """The stages' interpreters have started and are loading."""
    deadline_s = time.monotonic() + _PATIENCE_S
    for name in ("cantata:talker:0", "cantata:decoder:0"):
        while not find_descendants(name, api):
            assert time.monotonic() < deadline_s, name
            time.sleep(_LOOK_S)


def processor_time_until_gone(family: list[psutil.Process]) -> float:
    """Seconds that these processes still used, together."""
    before = {}
    for child in family:
        with suppress(psutil.Error):
            before[child] = child.cpu_times()
    after = dict(before)
    alive, deadline_s = family, time.monotonic() + _PATIENCE_S
    while alive:
        assert time.monotonic() < deadline_s, alive
        for child in alive:
            with suppress(psutil.Error):
                after[child] = child.cpu_times()
        _, alive = psutil.wait_procs(alive, timeout=_LOOK_S)
    return sum(
        after[child].user + after[child].system - before[child].user - before[child].system
        for child in before
    )
