"""Dataclasses as the bodies of a link's frames."""

from __future__ import annotations

from typing import TypeVar

from cantata.cluster.link.errors import Garbage
from cantata.connectors import bodies
from cantata.connectors.bodies import encode
from cantata.connectors.wire import BrokenChannel

__all__ = ["decode", "encode"]

T = TypeVar("T")


def decode(body: bytearray, kind: type[T]) -> T:
    """What `encode` made; its arrays lie in `body`.

    Raises:
        Garbage: the body is no such message.
    """
    try:
        return bodies.decode(body, kind)
    except BrokenChannel as error:
        raise Garbage(str(error)) from error
