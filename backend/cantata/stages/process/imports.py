"""What the fork server imports before any other module.

Importing it has side effects, on purpose: it names the process, leaves Ctrl-C, which reaches the
whole process group, to the api, and loads torch with the settings that a stage needs. Then it
imports what `fork_server.complete` names.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import os
import signal

from setproctitle import setproctitle

from cantata.ipc.fork_server import NAMES_VARIABLE
from cantata.stages.process.launch import load_torch

_PR_SET_PDEATHSIG = 1
"""Linux's prctl option."""


def _end_with_parent(signal_number: int) -> None:
    """Get this signal when the process that started this one ends; 0: none."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)


def _import_named(reader: int) -> None:
    """Import the modules of which the names arrive; end without any."""
    with open(reader, encoding="ascii") as pipe:
        names = pipe.read().split()
    if not names:
        os._exit(0)
    _end_with_parent(0)
    for name in names:
        # The stage that needs it reports it.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


setproctitle("cantata:fork-server")
signal.signal(signal.SIGINT, signal.SIG_IGN)
_path = os.environ.pop(NAMES_VARIABLE, None)
_reader = None
if _path is not None:
    # A mistake in a command ends it while torch is being imported: nothing may outlive it.
    _end_with_parent(signal.SIGKILL)
    _reader = os.open(_path, os.O_RDONLY)
# None of it is garbage, and searching it for garbage takes time.
gc.disable()
load_torch()
# Tearing the interpreter down takes a while, and libraries warn of what is left.
atexit.register(os._exit, 0)
# Every stage keeps what is imported here until it exits. A garbage collection would scan it
# and so copy the memory pages that the stages share.
gc.freeze()
gc.enable()
if _reader is not None:
    _import_named(_reader)
