"""The latest of what one task tells another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Has room for one message; a later one takes the place of one that was not taken.

    Args:
        combined: of the message that was not taken and the later one.
    """

    def __init__(self, combined: Callable[[T, T], T]) -> None:
        self._combined = combined
        self._message: T | None = None
        self._error: BaseException | None = None
        self._filled = asyncio.Event()

    def put(self, message: T) -> None:
        """Leave a message."""
        self._message = message if self._message is None else self._combined(self._message, message)
        self._filled.set()

    def fail(self, error: BaseException) -> None:
        """What was left is still taken; after it, this is raised."""
        self._error = error
        self._filled.set()

    async def take(self) -> T:
        """Wait for a message.

        Raises:
            BaseException: what `fail` was given.
        """
        await self._filled.wait()
        message, self._message = self._message, None
        if message is None:
            assert self._error is not None, "filled, and without a message"
            raise self._error
        if self._error is None:
            self._filled.clear()
        return message
