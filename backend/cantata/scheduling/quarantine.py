"""Finds requests that end processes, and rejects them from then on.

When a process crashes, every request that it worked on is a suspect. A suspect that is sent again
and is there again when the next one crashes is the cause. Two rules protect the innocent: a request
that gets further than at the last death is no longer a suspect, and suspects run one at a time
until they have got further, so that the next death identifies one.

A request is identified by what it asks for, not by its client.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from cantata.contract.data.errors import Quarantined

LEEWAY_FRAMES = 8
"""Two deaths at most this many frames apart are at the same place: a codec decodes as many at
once."""
MAX_WAIT_S = 8.0
"""Longest wait for earlier suspects; after that they run together."""
_MAX_KEPT = 1024


@dataclass(frozen=True, slots=True)
class CrashRecord:
    """A request that was in the call when a process died."""

    process: str
    """Name of the stage or replica."""
    done: int
    """How far the request was; in a stage, in frames."""


class Quarantine:
    """The suspects and quarantined requests of some processes, by digest.

    Args:
        leeway: how far apart two deaths at the same place may be.
    """

    def __init__(self, leeway: int = LEEWAY_FRAMES) -> None:
        self._leeway = leeway
        self._crash_records: OrderedDict[bytes, CrashRecord] = OrderedDict()
        self._refused: OrderedDict[bytes, str] = OrderedDict()
        self.total = 0
        """Requests quarantined since the start."""

    def __bool__(self) -> bool:
        """Whether there are any strikes or quarantined requests."""
        return bool(self._crash_records or self._refused)

    def check(self, digest: bytes) -> None:
        """Raises Quarantined if the request is quarantined."""
        process = self._refused.get(digest)
        if process is not None:
            raise Quarantined(
                f"this request has ended the {process} process twice and is rejected; change its "
                "text or options",
                "input",
            )

    def crash_record(self, digest: bytes) -> CrashRecord | None:
        """The request's last strike, unless it has got further since."""
        return self._crash_records.get(digest)

    def has_passed(self, digest: bytes, done: int) -> bool:
        """Whether a request that has come this far is past its strike."""
        crash_record = self._crash_records.get(digest)
        return crash_record is None or done > crash_record.done + self._leeway

    def clear(self, digest: bytes) -> None:
        """Forget the strike of a request that got further or completed."""
        self._crash_records.pop(digest, None)

    def record_death(
        self, process: str, implicated: Mapping[bytes, int], *, others: int = 0
    ) -> bytes | None:
        """A process crashed while working on these requests. Returns the culprit, if it is certain.

        Args:
            process: its name.
            suspects: how far each of them was, by digest.
            others: requests that it worked on as well, and that nobody can tell apart.
        """
        alone = len(implicated) + others == 1
        again = [
            digest
            for digest, done in implicated.items()
            if (crash_record := self._crash_records.get(digest)) is not None
            and crash_record.process == process
            and (alone or abs(done - crash_record.done) <= self._leeway)
        ]
        for digest, done in implicated.items():
            _keep(self._crash_records, digest, CrashRecord(process, done))
        if len(again) != 1:
            return None
        [found] = again
        self.clear(found)
        _keep(self._refused, found, process)
        self.total += 1
        return found


class SerialRetryQueue:
    """Starts suspects one at a time. Each is identified by an object that equals nothing else."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._holder: object | None = None

    async def wait(self, request: object) -> None:
        """Return when no earlier suspect runs, or when they have taken too long."""
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                await self._turn.acquire()
        except TimeoutError:
            return
        self._holder = request

    def give_back(self, request: object) -> None:
        """End a suspect's turn, if it had one, so that the next may start."""
        if self._holder == request:
            self._holder = None
            self._turn.release()


def _keep(kept: OrderedDict[bytes, Any], digest: bytes, value: Any) -> None:
    kept[digest] = value
    kept.move_to_end(digest)
    if len(kept) > _MAX_KEPT:
        kept.popitem(last=False)


def hash_content(*content: Any) -> bytes:
    """Digest of a request's content: dataclasses, mappings, sequences, arrays, bytes, plain
    values."""
    summed = hashlib.sha256()
    for part in content:
        _add(summed, part)
    return summed.digest()


def _add(summed: Any, part: Any) -> None:
    match part:
        case Mapping():
            summed.update(b"{%d" % len(part))
            for key in sorted(part):
                _add(summed, key)
                _add(summed, part[key])
        case _ if is_dataclass(part):
            _add(summed, {field.name: getattr(part, field.name) for field in fields(part)})
        case list() | tuple():
            summed.update(b"[%d" % len(part))
            for item in part:
                _add(summed, item)
        case np.ndarray():
            summed.update(repr((part.dtype.str, part.shape)).encode())
            summed.update(np.ascontiguousarray(part).tobytes())
        case bytes():
            summed.update(b"b%d:" % len(part))
            summed.update(part)
        case _:
            text = repr(part).encode()
            summed.update(b"%d:" % len(text))
            summed.update(text)
