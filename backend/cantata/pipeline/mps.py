"""NVIDIA's Multi-Process Service: kernels of several processes run on one GPU at the same time.

Without it, their contexts take turns, and a codec beside its talker delays each sound. A server
that has two stage processes on one GPU starts the service, if it is installed, and ends it at its
own end. `colocate` needs no service. Nor is one started where the user has set up or begun their
own.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cantata.config import Deployment
from cantata.pipeline.gpu_memory import list_cards

logger = logging.getLogger(__name__)

EXECUTABLE = "nvidia-cuda-mps-control"
PIPES, LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
START_DEADLINE_S = 10.0
END_DEADLINE_S = 5.0
_PAUSE_S = 0.05
_PR_SET_PDEATHSIG = 1
"""Linux's prctl option."""
_LIBC = ctypes.CDLL(None)


def find_shared_gpus(deployments: Iterable[Deployment]) -> Mapping[int, Sequence[str]]:
    """The GPUs that several stage processes of this machine use, each with what runs there."""
    processes: dict[int, set[tuple[int, tuple[str, ...]]]] = {}
    for number, deployment in enumerate(deployments):
        for name, stage in deployment.stages.items():
            if stage.host is None:
                for card in list_cards(stage):
                    processes.setdefault(card, set()).add((number, deployment.sharing(name)))
    return {
        card: sorted("+".join(stages) for _, stages in there)
        for card, there in processes.items()
        if len(there) > 1
    }


class MpsControl:
    """The service, for one server. `shared`: the GPUs that several processes use, and those
    processes."""

    def __init__(self, shared: Mapping[int, Sequence[str]]) -> None:
        self._shared = shared
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None

    async def start(self) -> None:
        """Start it, if it is of use and is not there yet. Stages that are spawned later use it.
        Without it, they run all the same."""
        if not self._shared:
            return
        said = "; ".join(f"GPU {card}: {', '.join(who)}" for card, who in self._shared.items())
        executable = shutil.which(EXECUTABLE)
        if executable is None:
            logger.warning("%s: their kernels take turns: %s is not installed", said, EXECUTABLE)
            return
        if PIPES in os.environ or await self._answers(executable):
            logger.info("%s: with the MPS daemon that is there", said)
            return
        self._begin(executable)
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                while not await self._answers(executable):  # noqa: ASYNC110 (nothing to wait for)
                    await asyncio.sleep(_PAUSE_S)
        except TimeoutError:
            logger.warning("%s: their kernels take turns: the MPS daemon does not answer", said)
            await self.stop()
            return
        assert self._process is not None
        logger.info("%s: MPS daemon started (process %d)", said, self._process.pid)

    async def stop(self) -> None:
        """End it, if it was started here; the stages have ended."""
        process, self._process = self._process, None
        if process is None:
            return
        await asyncio.to_thread(_end, process)
        for variable in (PIPES, LOGS):
            os.environ.pop(variable, None)
        assert self._folder is not None
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
        logger.info("MPS daemon ended")

    def _begin(self, executable: str) -> None:
        folder = self._folder = Path(tempfile.mkdtemp(prefix="cantata-mps-"))
        for variable, name in ((PIPES, "pipes"), (LOGS, "logs")):
            (folder / name).mkdir()
            os.environ[variable] = str(folder / name)
        # In the foreground, so that it ends with this process, however that ends. In this thread,
        # because the kernel counts the end of the thread that started it.
        self._process = subprocess.Popen(
            [executable, "-f"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_end_with_server,
            process_group=0,
        )

    async def _answers(self, executable: str) -> bool:
        """Whether the daemon of these environment variables does."""
        return await asyncio.to_thread(_command, executable, "get_server_list")


def _end_with_server() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _command(executable: str, command: str) -> bool:
    """Whether the daemon has carried it out."""
    try:
        done = subprocess.run(
            [executable],
            input=f"{command}\n".encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=END_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask it, then make it."""
    executable = shutil.which(EXECUTABLE)
    if executable is not None:
        _command(executable, "quit")
    for end in (process.terminate, process.kill):
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_DEADLINE_S)
        if process.returncode is not None:
            return
        end()
    process.wait()
