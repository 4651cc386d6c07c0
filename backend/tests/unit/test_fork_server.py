"""The fork server begins before its stages are known, and never outlives who began it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

BEGUN = """
import os, signal, sys
from multiprocessing import forkserver, get_context
from cantata.ipc import fork_server

fork_server.begin()
pid = forkserver._forkserver._forkserver_pid
print(pid, flush=True)
"""
FORKED = "import sys; print({'torch', 'wave'} <= set(sys.modules), 'vllm' in sys.modules)"
DEADLINE_S = 120


def run(then: str) -> tuple[int, int, list[str]]:
    """Exit code of a process that has begun, the fork server's id, and what was printed."""
    words = [sys.executable, "-c", BEGUN + then]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S)
    pid, *said = done.stdout.splitlines()
    return done.returncode, int(pid), said


def test_it_imports_what_is_named_later() -> None:
    code, _, said = run(f"""
assert "torch" not in sys.modules
fork_server.complete(["no_such_module", "wave"])
process = get_context("forkserver").Process(target=exec, args=({FORKED!r},))
process.start()
assert forkserver._forkserver._forkserver_pid == pid
process.join()
""")
    assert (code, said) == (0, ["True False"])


def test_one_that_has_died_imports_all_of_it_when_it_is_needed() -> None:
    code, _, said = run(f"""
os.kill(pid, signal.SIGKILL)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
fork_server.complete(["wave"])
process = get_context("forkserver").Process(target=exec, args=({FORKED!r},))
process.start()
assert forkserver._forkserver._forkserver_pid != pid
process.join()
""")
    assert (code, said) == (0, ["True False"])


def test_it_ends_if_no_stage_is_forked() -> None:
    code, _, said = run("fork_server.complete([]); print(os.waitpid(pid, 0)[1])")
    assert (code, said) == (0, ["0"])


@pytest.mark.parametrize(
    ("ending", "code"), [("sys.exit(3)", 3), ("os.kill(os.getpid(), signal.SIGKILL)", -9)]
)
def test_it_ends_with_a_command_that_was_a_mistake(ending: str, code: int) -> None:
    found, pid, _ = run(ending)
    assert found == code
    with suppress(psutil.NoSuchProcess):  # it has ended already
        psutil.Process(pid).wait(DEADLINE_S)
