"""The processes of the other ranks, as rank 0 sees them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection

from cantata.contract.data.errors import StageDied
from cantata.stages.diffusion.ranks.messages import Loaded, LoadModel, Message

_MODULE = "cantata.stages.diffusion.ranks.main"


class RankPeer:
    """One of them. Its process starts at once and loads a model."""

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
