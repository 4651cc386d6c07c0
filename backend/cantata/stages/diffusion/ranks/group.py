"""The ranks of one stage: how they find each other, their messages and their processes.

Once they have found each other, torch's collectives work among them. All ranks get the same jobs in
the same order.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from torch import distributed

from cantata.contract.data.chunks import Payload
from cantata.contract.data.errors import CantataError, ConfigError, StageDied
from cantata.contract.data.request import StageInput
from cantata.contract.model.denoiser import DenoiserOptions, Ranks


@dataclass(frozen=True, slots=True)
class LoadModel:
    """The first message: which model to load."""

    title: str
    """Title of the process."""
    factory: str
    """`package.module:function`."""
    checkpoint: Path
    options: DenoiserOptions
    """The options, with the receiver's own rank."""
    store_port: int
    """Where the ranks find each other, on this machine's loopback."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The answer to `LoadModel`, the only one that there is."""

    error: CantataError | None


@dataclass(frozen=True, slots=True)
class Begin:
    """Make a job."""

    number: int
    inputs: StageInput
    arrived: Mapping[str, Payload]


@dataclass(frozen=True, slots=True)
class Advance:
    """Compute a step of these jobs."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Forget:
    """Free a job; nobody holds it any longer."""

    number: int


Message = Begin | Advance | Forget
"""What a rank obeys once it has loaded."""


LOOPBACK = "127.0.0.1"
LOOPBACK_INTERFACE = "lo"
TIMEOUT = timedelta(minutes=10)
"""Of one exchange. A rank that has ended is noticed at once by other means."""


@contextmanager
def listening() -> Iterator[socket.socket]:
    """A socket on the loopback for the ranks' common store; torch's own would listen to every
    interface."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        yield listener


def join(ranks: Ranks, device: str, port: int, listener: socket.socket | None) -> None:
    """Make this process a rank; returns when all of them are there.

    Args:
        ranks: which one it is.
        device: where it computes.
        port: of the common store.
        listener: rank 0's socket on that port, which torch takes over; None for the others.

    Raises:
        ConfigError: this machine has too few GPUs.
    """
    on_gpu = device.startswith("cuda")
    if on_gpu:
        count = torch.cuda.device_count()
        if count < ranks.size:
            raise ConfigError(f"parallel: {ranks.size} ranks need as many GPUs; there are {count}")
        torch.cuda.set_device(device)
    # All ranks are on this machine, and nobody else may connect to them.
    for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        os.environ.setdefault(variable, LOOPBACK_INTERFACE)
    store = distributed.TCPStore(  # type: ignore[attr-defined]
        LOOPBACK,
        port,
        world_size=ranks.size,
        is_master=listener is not None,
        wait_for_workers=False,
        timeout=TIMEOUT,
        master_listen_fd=None if listener is None else listener.detach(),
    )
    distributed.init_process_group(
        "nccl" if on_gpu else "gloo",
        store=store,
        rank=ranks.rank,
        world_size=ranks.size,
        timeout=TIMEOUT,
    )


_MODULE = "cantata.stages.diffusion.ranks.main"


class RankPeer:
    """The process of another rank. It starts at once and loads a model."""

    def __init__(self, load: LoadModel) -> None:
        self._ending = False
        ours, theirs = socket.socketpair()
        with theirs:
            descriptor = theirs.fileno()
            # A stage's process is a daemon of multiprocessing, which may not start one of its own.
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(descriptor)],
                pass_fds=[descriptor],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        self._connection = Connection(ours.detach())
        self._connection.send(load)

    def wait_until_loaded(self) -> None:
        """Raises:
        CantataError: why its model could not be loaded.
        StageDied: it ended instead.
        """
        try:
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise StageDied("another rank of this stage ended while it loaded") from error
        assert isinstance(answer, Loaded)
        if answer.error is not None:
            raise answer.error

    def send(self, message: Message) -> None:
        """Raises:
        OSError: it has ended.
        """
        self._connection.send(message)

    def watch(self, lost: Callable[[], None]) -> None:
        """Call `lost`, in a thread, if the process ends before it is told to."""

        def wait() -> None:
            self._process.wait()
            if not self._ending:
                lost()

        threading.Thread(target=wait, name="rank-watch", daemon=True).start()

    def end(self) -> None:
        """Close the connection, upon which the process ends, and wait for that."""
        self._ending = True
        self._connection.close()
        self._process.wait()
