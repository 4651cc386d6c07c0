"""Lets running requests end before a pipeline leaves machines that are about to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class HostDrain:
    """Disconnects one pipeline from draining machines once no request runs.

    Args:
        disconnect_draining: ends what connects the pipeline with machines that are about to stop.
    """

    def __init__(self, disconnect_draining: Callable[[], None]) -> None:
        self._disconnect_draining = disconnect_draining
        self._active_requests = 0
        self._announced = False

    @contextmanager
    def track_request(self) -> Iterator[None]:
        """Count a request for the time of the block: all its segments, with the pauses between."""
        self._active_requests += 1
        try:
            yield
        finally:
            self._active_requests -= 1
            self._disconnect_if_idle()

    def announce(self) -> None:
        """A machine is about to stop. No request begins meanwhile, because its stages are not
        ready any more."""
        self._announced = True
        self._disconnect_if_idle()

    def _disconnect_if_idle(self) -> None:
        if self._announced and not self._active_requests:
            self._announced = False
            self._disconnect_draining()
