"""The processes that another one has started, though they may end while they are read."""

from __future__ import annotations

from contextlib import suppress

import psutil


def find_descendants(word: str, pid: int | None = None) -> list[psutil.Process]:
    """The living processes below `pid` (the test's own) whose command line has `word`."""
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # of which a zombie is one kind
            if word in " ".join(process.cmdline()):
                found.append(process)
    return found
