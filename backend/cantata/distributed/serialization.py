"""Dataclasses as the bodies of a link's frames."""

from __future__ import annotations

from typing import TypeVar

from cantata.distributed.link.errors import ProtocolError
from cantata.ipc import serialization
from cantata.ipc.serialization import encode
from cantata.ipc.wire import BrokenChannel

__all__ = ["decode", "encode"]

T = TypeVar("T")


def decode(body: bytearray, kind: type[T]) -> T:
    """What `encode` made; its arrays lie in `body`. Raises ProtocolError: the body is no such
    message."""
    try:
        return serialization.decode(body, kind)
    except BrokenChannel as error:
        raise ProtocolError(str(error)) from error
