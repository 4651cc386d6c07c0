"""A server with the jobs and batches of a folder, in a process that is killed at the end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx


@contextmanager
def keeper(folder: Path) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """The server, and a client of it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-m", "tiny_voice.keeper", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            with httpx.Client(base_url=url, timeout=120) as http:
                yield process, http
        finally:
            process.kill()
