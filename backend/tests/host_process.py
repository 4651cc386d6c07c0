"""A process on a host of its own: a network namespace, or where none can be made, another of the
machine's own addresses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import namespaces
from cantata.distributed.address import Address
from cantata.distributed.key import KEY_VARIABLE

KEY = "a key of thirty-two bytes, about"
END_S = 30.0


@dataclass
class HostProcess:
    """`python -m MODULE ...`, with the key in its environment; it says its address when it is
    ready."""

    words: list[str]
    """The module, and what follows it."""
    address: Address
    host: namespaces.Host | None = None
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self.end()
        self.process = subprocess.Popen(
            [*(self.host.prefix if self.host else []), sys.executable, "-m", *self.words],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), KEY_VARIABLE: KEY},
        )

    def wait_until_ready(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        assert self.process.stdout.readline().split()[-1:] == [str(self.address)]

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def end(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait(END_S)  # its children may keep its output open for longer
            assert self.process.stdout is not None
            self.process.stdout.close()


@contextmanager
def process_on_host(number: int, port: int, *words: str) -> Iterator[HostProcess]:
    """One that is not started yet, and is ended after the block.

    Args:
        number: as `namespaces.host`'s.
        port: on which it listens.
        words: the module and its arguments; `{address}` stands for where it listens.
    """

    def made(address: Address, host: namespaces.Host | None = None) -> HostProcess:
        return HostProcess([word.format(address=address) for word in words], address, host)

    if not namespaces.are_possible():
        process = made(Address(f"127.0.0.{number + 2}", port))
        try:
            yield process
        finally:
            process.end()
        return
    with namespaces.host(number) as host:
        process = made(Address(host.address, port), host)
        try:
            yield process
        finally:
            process.end()
