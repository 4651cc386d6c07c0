"""Finds requests that end stage processes, and rejects them from then on.

When a process crashes, every request in its last call is a suspect. A suspect that is sent again
and is in the fatal call again is the cause. Two rules protect the innocent: a request that gets
further than at the last death is no longer a suspect, and suspects run one at a time until they
have got further, so that the next death identifies one.

A request is identified by its stages' inputs, not by its client.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from cantata.contract.data.errors import Quarantined

LEEWAY_FRAMES = 8
"""How many frames apart two deaths at the same place may be: a codec decodes as many at once."""
_MAX_KEPT = 1024


@dataclass(frozen=True, slots=True)
class Strike:
    """A request was in the fatal call of a stage process."""

    stage: str
    frames: int
    """Frames that the stage had made of it."""

    def passed(self, frames: int) -> bool:
        """Whether a request with this many frames is past it."""
        return frames > self.frames + LEEWAY_FRAMES


class Quarantine:
    """One pipeline's suspects and quarantined requests, by digest."""

    def __init__(self) -> None:
        self._strikes: OrderedDict[bytes, Strike] = OrderedDict()
        self._refused: OrderedDict[bytes, str] = OrderedDict()
        self.total = 0
        """Requests quarantined since the start."""

    def __bool__(self) -> bool:
        """Whether there are any strikes or quarantined requests."""
        return bool(self._strikes or self._refused)

    def check(self, digest: bytes) -> None:
        """Raises Quarantined if the request is quarantined."""
        stage = self._refused.get(digest)
        if stage is not None:
            raise Quarantined(
                f"this request has ended the {stage} process twice and is rejected; change its "
                "text or options",
                "input",
            )

    def strike(self, digest: bytes) -> Strike | None:
        """The request's last strike, unless it has got further since."""
        return self._strikes.get(digest)

    def clear(self, digest: bytes) -> None:
        """The request got further, or completed."""
        self._strikes.pop(digest, None)

    def died(self, stage: str, suspects: Mapping[bytes, int]) -> bytes | None:
        """A process crashed during a call with these requests; returns the cause, if it is certain.

        Args:
            suspects: frames made, by digest.
        """
        again = [
            digest
            for digest, frames in suspects.items()
            if (strike := self._strikes.get(digest)) is not None
            and strike.stage == stage
            and (len(suspects) == 1 or abs(frames - strike.frames) <= LEEWAY_FRAMES)
        ]
        for digest, frames in suspects.items():
            _keep(self._strikes, digest, Strike(stage, frames))
        if len(again) != 1:
            return None
        [found] = again
        self.clear(found)
        _keep(self._refused, found, stage)
        self.total += 1
        return found


def _keep(kept: OrderedDict[bytes, Any], digest: bytes, value: Any) -> None:
    kept[digest] = value
    kept.move_to_end(digest)
    if len(kept) > _MAX_KEPT:
        kept.popitem(last=False)


def digest_of(*content: Any) -> bytes:
    """Digest of stage inputs: dataclasses, mappings, sequences, arrays, bytes and plain values."""
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
