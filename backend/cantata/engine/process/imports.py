"""What the fork server imports before any other module.

Importing it has side effects, on purpose: it names the process, leaves Ctrl-C, which reaches the
whole process group, to the api, and loads torch with the settings that a stage needs.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal

from setproctitle import setproctitle

from cantata.engine.process.launch import load_torch

setproctitle("cantata:fork-server")
signal.signal(signal.SIGINT, signal.SIG_IGN)
# None of it is garbage, and searching it for garbage takes time.
gc.disable()
load_torch()
# Tearing the interpreter down takes a while, and libraries warn of what is left.
atexit.register(os._exit, 0)
# Every stage keeps what is imported here until it exits. A garbage collection would scan it
# and so copy the memory pages that the stages share.
gc.freeze()
gc.enable()
