"""What a stage process is doing now, in memory that the server can read at any time.

A process that hangs or has died answers nothing. So the loop records in a page that it shares with
the server which call it is in, since when, and how many frames each request has. Writing takes
about a microsecond and wakes no process.
"""

from __future__ import annotations

import mmap
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from cantata.contract.data.errors import CantataError

_ID_BYTES = 96
_HEADER = np.dtype(
    [
        ("number", "u8"),
        ("phase", "u8"),
        ("began_s", "f8"),
        ("request_id", f"S{_ID_BYTES}"),
        ("longest_s", "f8", (3,)),
    ]
)
_ENTRY = np.dtype([("request_id", f"S{_ID_BYTES}"), ("frames", "u8")])


class HeartbeatPhase(IntEnum):
    """What kind of call the loop is in."""

    WAITING = 0
    """None: it waits for messages, or for room on an edge."""
    STEADY = 1
    """One that takes about as long as the last: a step of requests that have all begun."""
    BEGINNING = 2
    """One that may take much longer: a prompt is encoded or prefilled, or kernels are compiled for
    a number of requests that there has not been yet."""


@dataclass(frozen=True, slots=True)
class HeartbeatSnapshot:
    """A stage process at one moment."""

    number: int
    """Number of the call; each call has a new one."""
    phase: HeartbeatPhase
    began_s: float
    """When the call began, by `time.monotonic`."""
    longest_s: float
    """The longest call of this kind so far."""
    request_id: str
    """The one request that the call works on; empty: all that are held."""
    frames: Mapping[str, int]
    """Frames made so far, by request held."""

    @property
    def alone(self) -> bool:
        """Whether the call works on one request alone."""
        return self.phase is not HeartbeatPhase.WAITING and bool(self.request_id)

    @property
    def at_work_on(self) -> Mapping[str, int]:
        """The requests that this call works on, with their frames."""
        if self.phase is HeartbeatPhase.WAITING:
            return {}
        if self.alone:
            return {self.request_id: self.frames.get(self.request_id, 0)}
        return self.frames


class SharedHeartbeat:
    """Both ends of the page: the loop writes, the server reads.

    Args:
        fd: of memory that `make_memory` made; closed here.
        compiles: whether the stage's device may compile kernels when it first computes for a number
            of requests. It sleeps meanwhile, while its compiler works.
    """

    def __init__(self, fd: int, *, compiles: bool = False) -> None:
        self._compiles = compiles
        self._known_counts: set[int] = set()
        """Requests held in steps so far."""
        memory = self._memory = mmap.mmap(fd, 0)
        os.close(fd)
        self._header = np.frombuffer(memory, _HEADER, 1)
        self._entries = np.frombuffer(
            memory, _ENTRY, (len(memory) - _HEADER.itemsize) // _ENTRY.itemsize, _HEADER.itemsize
        )
        self._calls = 0
        """In progress."""
        self._calls_lock = threading.Lock()
        self._rows: dict[str, int] = {}
        self._silent: set[str] = set()

    @property
    def held(self) -> tuple[str, ...]:
        """Ids of the requests that the loop holds."""
        return tuple(self._rows)

    @contextmanager
    def during(self, phase: HeartbeatPhase, request_id: str = "") -> Iterator[None]:
        """The loop is in a call. A stage with several threads may be in several: then the page
        tells of the latest that has begun or ended."""
        header = self._header[0]
        began_s = time.monotonic()
        with self._calls_lock:
            self._calls += 1
            header["request_id"] = request_id.encode()
            header["began_s"] = began_s
            header["phase"] = phase
            header["number"] += 1
        try:
            yield
        except CantataError:  # fails one request; any other ends the process in this call
            self._end_call()
            raise
        took_s = time.monotonic() - began_s
        self._end_call()
        if took_s > header["longest_s"][phase]:
            header["longest_s"][phase] = took_s

    def _end_call(self) -> None:
        header = self._header[0]
        with self._calls_lock:
            self._calls -= 1
            if self._calls:
                header["number"] += 1
            else:
                header["phase"] = HeartbeatPhase.WAITING

    def clear_call(self) -> None:
        """The process is about to end for another reason than the call that the loop is in."""
        with self._calls_lock:
            self._header[0]["phase"] = HeartbeatPhase.WAITING

    def begin_step(self) -> HeartbeatPhase:
        """What kind of call the step is that begins now."""
        is_new = self._compiles and len(self._rows) not in self._known_counts
        self._known_counts.add(len(self._rows))
        return HeartbeatPhase.BEGINNING if self._silent or is_new else HeartbeatPhase.STEADY

    def hold(self, request_id: str, *, has_prompt: bool) -> None:
        """The stage has accepted this request. `has_prompt`: the steps before its first frame may
        take much longer than others."""
        used = set(self._rows.values())
        row = next((row for row in range(len(self._entries)) if row not in used), None)
        if row is not None:  # a stage never holds more than it has slots
            self._rows[request_id] = row
            if has_prompt:
                self._silent.add(request_id)
            self._entries[row] = (request_id.encode(), 0)

    def record_frames(self, request_id: str, frames: int) -> None:
        row = self._rows.get(request_id)
        if row is not None:
            self._silent.discard(request_id)
            self._entries["frames"][row] += frames

    def remove(self, request_id: str) -> None:
        """The stage has freed a request; unknown ids are fine."""
        row = self._rows.pop(request_id, None)
        self._silent.discard(request_id)
        if row is not None:
            self._entries[row] = (b"", 0)

    def close(self) -> None:
        """Release the memory and its descriptor; after that nothing can be read."""
        del self._header, self._entries
        self._memory.close()

    def read(self) -> HeartbeatSnapshot:
        """The current state. A call that began during the read may be seen in part, until the next
        read."""
        header = self._header[0]
        phase = HeartbeatPhase(int(header["phase"]))
        entries = self._entries[self._entries["request_id"] != b""]
        return HeartbeatSnapshot(
            number=int(header["number"]),
            phase=phase,
            began_s=float(header["began_s"]),
            longest_s=float(header["longest_s"][phase]),
            request_id=_decode_id(header["request_id"]),
            frames={_decode_id(entry["request_id"]): int(entry["frames"]) for entry in entries},
        )


def _decode_id(request_id: np.bytes_) -> str:
    return bytes(request_id).decode(errors="replace")


def make_memory(slots: int) -> int:
    """A descriptor of memory for one stage's pulse; the kernel frees it with its last user."""
    fd = os.memfd_create("cantata-pulse")
    os.ftruncate(fd, _HEADER.itemsize + slots * _ENTRY.itemsize)
    return fd


def send_memory(control: socket.socket, fd: int) -> None:
    """Hand the memory to the process at the other end, before anything else is sent."""
    socket.send_fds(control, [b"p"], [fd])


def receive_memory(control: socket.socket) -> int:
    """Receive the memory from the server. Raises ConnectionError: the server is gone."""
    _, fds, _, _ = socket.recv_fds(control, 1, 1)
    if not fds:
        raise ConnectionError("the server is gone")
    return int(fds[0])
