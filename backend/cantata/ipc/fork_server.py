"""The fork server's start, in two parts: what every stage imports, then what these stages do.

Torch takes seconds to import, and so does what a command imports before it knows which stages it
will run. With `begin`, the fork server imports torch meanwhile; `complete` names the other modules.
Importing this module is quick.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Sequence
from multiprocessing import forkserver

NAMES_VARIABLE = "CANTATA_FORK_SERVER_NAMES"
"""The path at which the fork server finds the pipe of the modules' names."""
_SAFE_PATH = "PYTHONSAFEPATH"
_IMPORTS = "cantata.stages.process.imports"
_MAX_SOCKET_PATH = 107
"""Bytes (unix(7))."""
_LISTENER = "/pymp-12345678/listener-12345678"
"""As long as the path on which the fork server listens, in the temporary folder."""

_writer: int | None = None
"""The end of the pipe that is ours, while the fork server waits for names."""


def is_possible() -> bool:
    """Whether the temporary folder's path is short enough for the fork server's socket."""
    listener = os.fsencode(tempfile.gettempdir() + _LISTENER)
    return len(listener) <= _MAX_SOCKET_PATH


def begin() -> None:
    """Start the fork server, which imports what every stage needs; returns at once.

    For the main thread, once, followed by `complete`. Without that the fork server ends with this
    process.
    """
    global _writer
    if _writer is not None or not is_possible():
        return
    # WHY a path: the fork server inherits no descriptor. It opens this process's own, which so
    # stays open; a pipe ends when its writer has ended, whatever ended it.
    reader, _writer = os.pipe()
    os.environ[NAMES_VARIABLE] = f"/proc/{os.getpid()}/fd/{reader}"
    try:
        _start([_IMPORTS])
    finally:
        del os.environ[NAMES_VARIABLE]


def complete(modules: Sequence[str]) -> None:
    """Let the fork server import these too; returns at once. Starts it unless `begin` did.

    The first call decides what is imported. A later one finds the fork server running, or starts it
    again if it has died. Without modules there is no fork server.
    """
    global _writer
    writer, _writer = _writer, None
    if writer is not None:
        with open(writer, "w", encoding="ascii") as names:
            names.write("\n".join(modules))
    if modules:
        _start([_IMPORTS, *modules])


def _start(modules: list[str]) -> None:
    """Start the fork server unless it runs.

    It must not import from the working directory: a user's `tarfile.py` there would take the place
    of Python's.
    """
    multiprocessing.set_forkserver_preload(modules)
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before
