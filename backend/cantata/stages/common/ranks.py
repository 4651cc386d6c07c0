"""One stage in several processes (ranks): how they find each other, start and end together.

Rank 0 is the stage's own process, and starts the others. Once they have found each other, torch's
collectives work among them. All ranks get the same calls in the same order.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NoReturn, TypeVar

import torch
from torch import distributed

from cantata.contract.data.errors import CantataError, ConfigError, StageDied

logger = logging.getLogger(__name__)

R = TypeVar("R")

LOOPBACK = "127.0.0.1"
LOOPBACK_INTERFACE = "lo"
TIMEOUT = timedelta(minutes=10)
"""Of one exchange. A rank that has ended is noticed at once by other means."""
OWN_REASON_S = 30.0
"""For this rank to find the reason why another cannot load, too."""
LOST = 1
"""Exit code of a stage whose ranks no longer hold the same."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A rank's answer to the first message, the only one that there is."""

    error: CantataError | None


@contextmanager
def listening() -> Iterator[socket.socket]:
    """A socket on the loopback for the ranks' common store; torch's own would listen to every
    interface."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        yield listener


def join(rank: int, size: int, device: str, port: int, listener: socket.socket | None) -> None:
    """Make this process a rank; returns when all of them are there.

    Args:
        listener: rank 0's socket on that port, which torch takes over; None for the others.

    Raises:
        ConfigError: this machine has too few GPUs.
    """
    on_gpu = device.startswith("cuda")
    if on_gpu:
        count = torch.cuda.device_count()
        if count < size:
            raise ConfigError(f"{size} ranks need as many GPUs; there are {count}")
        torch.cuda.set_device(device)
    # All ranks are on this machine, and nobody else may connect to them.
    for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        os.environ.setdefault(variable, LOOPBACK_INTERFACE)
    store = distributed.TCPStore(  # type: ignore[attr-defined]
        LOOPBACK,
        port,
        world_size=size,
        is_master=listener is not None,
        wait_for_workers=False,
        timeout=TIMEOUT,
        master_listen_fd=None if listener is None else listener.detach(),
    )
    distributed.init_process_group(
        "nccl" if on_gpu else "gloo", store=store, rank=rank, world_size=size, timeout=TIMEOUT
    )


class RankPeer:
    """The process of another rank, as rank 0 sees it. It starts at once.

    Args:
        module: what it runs, as `python -m MODULE DESCRIPTOR`, where the descriptor is its end of a
            connected socket.
        load: the first message: what it loads.
    """

    def __init__(self, module: str, load: Any) -> None:
        self._ending = False
        self._loading: Future[None] = Future()
        ours, theirs = socket.socketpair()
        with theirs:
            descriptor = theirs.fileno()
            # A stage's process is a daemon of multiprocessing, which may not start one of its own.
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(descriptor)],
                pass_fds=[descriptor],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        self._socket, self._connection = ours, Connection(os.dup(ours.fileno()))
        self._connection.send(load)
        threading.Thread(target=self._read_answer, name="rank-load", daemon=True).start()

    def wait_until_loaded(self) -> None:
        """Raises:
        CantataError: why it could not load.
        StageDied: it ended instead.
        """
        self._loading.result()

    def end_stage_unless_loaded(self, decided: threading.Event) -> None:
        """End this process if the other rank cannot load while this one waits for it in a
        collective.

        Args:
            decided: set once this rank has loaded, or knows why it cannot. What no rank can load,
                each of them says.
        """

        def judge(loading: Future[None]) -> None:
            error = loading.exception()
            if error is not None and not decided.wait(OWN_REASON_S):
                end_stage(f"another rank cannot load: {error}")

        self._loading.add_done_callback(judge)

    def send(self, message: Any) -> None:
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
        with suppress(OSError):  # it has ended already
            # WHY not only closed: a thread that still reads would keep it open.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._connection.close()
        self._process.wait()

    def _read_answer(self) -> None:
        try:
            answer = self._connection.recv()
        except (EOFError, OSError):
            answer = Loaded(StageDied("another rank of this stage ended while it loaded"))
        assert isinstance(answer, Loaded)
        if answer.error is None:
            self._loading.set_result(None)
        else:
            self._loading.set_exception(answer.error)


class RankGroup:
    """The other ranks together, once they have loaded. `peers`: all of them."""

    def __init__(self, peers: Sequence[RankPeer]) -> None:
        self._peers = tuple(peers)
        self._sending = threading.Lock()

    def watch(self) -> None:
        """From now on this process ends if one of them does."""
        for peer in self._peers:
            peer.watch(partial(end_stage, "another rank has ended"))

    def broadcast(self, message: Any) -> None:
        """Send a message to every other rank; from any thread."""
        try:
            with self._sending:
                for peer in self._peers:
                    peer.send(message)
        except OSError:
            end_stage("another rank has ended")

    def call(self, call: Callable[[], R]) -> R:
        """Make a call that every rank makes. A `CantataError` is raised by all of them."""
        try:
            return call()
        except CantataError:
            raise
        except Exception:
            logger.exception("a fault of this rank alone")
            end_stage("the ranks no longer hold the same")

    def close(self) -> None:
        """End the other ranks."""
        for peer in self._peers:
            peer.end()


def end_stage(reason: str) -> NoReturn:
    """End this process, and the other ranks with it; the server starts the stage again."""
    logger.error("this stage ends: %s", reason)
    logging.shutdown()
    os._exit(LOST)
