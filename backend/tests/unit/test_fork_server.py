"""The fork server begins before its stages are known, and never outlives who began it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from textwrap import indent

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


def test_files_of_the_working_directory_are_not_imported(tmp_path: Path) -> None:
    """As `cantata` runs, whose own folder is not the working directory either."""
    command, here = tmp_path / "bin" / "command.py", tmp_path / "here"
    for folder in (command.parent, here):
        folder.mkdir()
    (here / "tarfile.py").write_text("raise SystemExit('this is not the tarfile of Python')")
    forked = f"""{BEGUN}
fork_server.complete(["wave"])
process = get_context("forkserver").Process(target=exec, args=({FORKED!r},))
process.start()
process.join()
"""
    command.write_text(f"if __name__ == '__main__':\n{indent(forked, ' ')}")
    done = subprocess.run(
        [sys.executable, command], cwd=here, capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, ["True False"]), done.stderr


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
