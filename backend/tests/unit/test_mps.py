"""NVIDIA's Multi-Process Service beside stages that share a GPU, with a daemon in its place."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cantata.config import ArDeployment, CodecDeployment, Deployment, FeedForwardDeployment
from cantata.pipeline import mps
from cantata.pipeline.mps import EXECUTABLE, LOGS, PIPES, MpsControl, find_shared_gpus
from cantata.pipeline.service import PipelineService

DAEMON = f"""#!{sys.executable} -S
# Behaves as the real one: -f runs in the foreground; without it, a command on standard input is for
# the daemon of the pipe directory, which must be there.
import os, pathlib, signal, sys
folder = pathlib.Path(os.environ.get("{PIPES}", "/nonexistent"))
pid = folder / "control.pid"
if sys.argv[1:] == ["-f"]:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))
    partial = folder / "partial"
    partial.write_text(str(os.getpid()))
    partial.rename(pid)
    while True:
        signal.pause()
assert sys.argv[1:] == []
if not pid.exists():
    print("Cannot find MPS control daemon process")
    sys.exit(1)
if sys.stdin.read().strip() == "quit":
    os.kill(int(pid.read_text()), signal.SIGUSR1)
"""
SHARED = {0: ["decoder", "talker"]}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    executable = tmp_path / EXECUTABLE
    executable.write_text(DAEMON)
    executable.chmod(executable.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return executable


@pytest.fixture
def mute(installed: Path) -> Path:
    """Its daemon cannot be reached."""
    installed.write_text(DAEMON.replace("partial.rename(pid)", "pass"))
    return installed


@pytest.fixture(autouse=True)
def no_daemon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for variable in (PIPES, LOGS):
        monkeypatch.delenv(variable, raising=False)
    before = set(psutil.Process().children())
    yield
    assert set(psutil.Process().children()) <= before


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def daemon_pid() -> int:
    return int((Path(os.environ[PIPES]) / "control.pid").read_text())


@pytest.mark.usefixtures("installed")
async def test_it_runs_as_long_as_the_server_and_leaves_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    service = PipelineService([], mps=MpsControl(SHARED))
    await service.start()
    daemon = psutil.Process(daemon_pid())
    folder = Path(os.environ[PIPES]).parent
    assert daemon.is_running()
    assert Path(os.environ[LOGS]).parent == folder
    assert f"GPU 0: decoder, talker: MPS daemon started (process {daemon.pid})" in caplog.text
    await service.stop()
    assert not daemon.is_running()
    assert not folder.exists()
    assert PIPES not in os.environ
    assert LOGS not in os.environ
    assert "MPS daemon ended" in caplog.text


@pytest.mark.usefixtures("installed")
async def test_a_daemon_of_the_users_own_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv(PIPES, str(tmp_path))
    control = MpsControl(SHARED)
    await control.start()
    assert "with the MPS daemon that is there" in caplog.text
    await control.stop()
    assert os.environ[PIPES] == str(tmp_path)


async def test_without_it_stages_run_and_the_log_says_what_that_costs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", "")
    control = MpsControl(SHARED)
    await control.start()
    assert f"their kernels take turns: {EXECUTABLE} is not installed" in caplog.text
    await control.stop()


@pytest.mark.usefixtures("mute")
async def test_a_daemon_that_does_not_answer_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mps, "START_DEADLINE_S", 0.2)
    control = MpsControl(SHARED)
    await control.start()
    assert "the MPS daemon does not answer" in caplog.text
    assert PIPES not in os.environ


@pytest.mark.usefixtures("installed")
async def test_no_gpu_is_shared_and_none_is_started() -> None:
    control = MpsControl({})
    await control.start()
    assert PIPES not in os.environ


@pytest.mark.usefixtures("installed")
async def test_it_ends_with_a_server_that_is_killed() -> None:
    code = (
        "import asyncio, os, signal\n"
        "from cantata.pipeline.mps import MpsControl\n"
        "async def main():\n"
        "    await MpsControl({0: ['a', 'b']}).start()\n"
        f"    print(open(os.environ['{PIPES}'] + '/control.pid').read(), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    made = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == -signal.SIGKILL, made.stderr
    pid = int(made.stdout)
    async with asyncio.timeout(30):
        while is_running(pid):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def test_stages_share_a_gpu_unless_they_share_a_process() -> None:
    def deploy(decoder: CodecDeployment, encoder: str = "cpu") -> Deployment:
        return Deployment(
            stages={
                "talker": ArDeployment(device="cuda"),
                "decoder": decoder,
                "encoder": FeedForwardDeployment(device=encoder),
            }
        )

    apart = deploy(CodecDeployment(device="cuda:0"))
    together = deploy(CodecDeployment(device="cuda", colocate="talker"))
    assert find_shared_gpus([apart]) == {0: ["decoder", "talker"]}
    assert find_shared_gpus([together]) == {}
    assert find_shared_gpus([deploy(CodecDeployment(device="cuda:1"))]) == {}
    beside = deploy(CodecDeployment(device="cuda", colocate="talker"), encoder="cuda")
    assert find_shared_gpus([beside]) == {0: ["encoder", "talker+decoder"]}
    assert find_shared_gpus([together, together]) == {0: ["talker+decoder"] * 2}
    assert find_shared_gpus([deploy(CodecDeployment())]) == {}
