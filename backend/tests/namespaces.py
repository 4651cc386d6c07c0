"""Network namespaces as hosts: a cable for each, which a test can pull."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

WHY_NOT = "network namespaces need iproute2, and root in a container that allows them"


@dataclass(frozen=True)
class Host:
    """A namespace that is reached over a cable of its own."""

    name: str
    cable: str
    """The interface at the test's end."""
    address: str
    """Its own, as the test sees it."""

    @property
    def prefix(self) -> list[str]:
        """Runs a command there."""
        return ["ip", "netns", "exec", self.name]

    def pull(self) -> None:
        """Nothing passes any more, and nobody is told."""
        _run("ip", "link", "set", self.cable, "down")

    def plug_in(self) -> None:
        """Everything passes again."""
        _run("ip", "link", "set", self.cable, "up")


@cache
def are_possible() -> bool:
    """Whether this machine lets the tests make some."""
    if shutil.which("ip") is None:
        return False
    try:
        with host(9):
            return True
    except subprocess.CalledProcessError:
        return False


@contextmanager
def host(number: int) -> Iterator[Host]:
    """A host for the time of the block.

    Args:
        number: 0 to 9, its own within the tests' process.
    """
    name = f"ct{os.getpid()}-{number}"
    net = f"10.{213 + number}.{os.getpid() // 250 % 250}"
    low = os.getpid() % 62 * 4
    made = Host(name, f"c{os.getpid()}-{number}", f"{net}.{low + 2}")
    _run("ip", "netns", "add", name)
    try:  # the cable goes with it
        _run("ip", "link", "add", made.cable, "type", "veth", "peer", "eth0", "netns", name)
        _run("ip", "address", "add", f"{net}.{low + 1}/30", "dev", made.cable)
        _run(*made.prefix, "ip", "address", "add", f"{made.address}/30", "dev", "eth0")
        _run(*made.prefix, "ip", "link", "set", "lo", "up")
        _run(*made.prefix, "ip", "link", "set", "eth0", "up")
        made.plug_in()
        yield made
    finally:
        _run("ip", "netns", "delete", name)


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=30)
