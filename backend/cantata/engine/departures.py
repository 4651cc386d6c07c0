"""Machines that are about to stop: the requests that run there end first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Departures:
    """One pipeline's.

    Args:
        let_go: ends what still connects the pipeline with machines that are about to stop.
    """

    def __init__(self, let_go: Callable[[], None]) -> None:
        self._let_go = let_go
        self._at_work = 0
        self._announced = False

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count a request for the time of the block: all its pieces, with the pauses between."""
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1
            self._look()

    def announce(self) -> None:
        """A machine is about to stop. No request begins meanwhile, because its stages are not
        ready any more."""
        self._announced = True
        self._look()

    def _look(self) -> None:
        if self._announced and not self._at_work:
            self._announced = False
            self._let_go()
