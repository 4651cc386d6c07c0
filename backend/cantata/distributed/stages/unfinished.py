"""Which requests a stage elsewhere still holds, as far as its messages show."""

from __future__ import annotations

from collections.abc import Collection, Iterable

MAX_OPEN = 4096
"""More than a stage has slots. A request may do without a port, which then has no last chunk: the
oldest are forgotten."""


class Unfinished:
    """Answers for a stage that cannot be asked any more.

    Args:
        ports: of the stage, whose chunks pass this machine. Without any, whatever the stage made
            went to another stage of its host, which is lost with it and knows more.
    """

    def __init__(self, ports: Collection[str]) -> None:
        self._ports = frozenset(ports)
        self._open: dict[str, set[str]] = {}

    @property
    def requests(self) -> frozenset[str]:
        """Requests that have a port without a last chunk."""
        return frozenset(self._open)

    def began(self, request_id: str) -> None:
        """Note that a request was registered."""
        if self._ports:
            self._open[request_id] = set(self._ports)
            if len(self._open) > MAX_OPEN:
                del self._open[next(iter(self._open))]

    def ended(self, request_id: str) -> None:
        """Note that a request failed or was aborted; unknown ids are fine."""
        self._open.pop(request_id, None)

    def passed(self, last: Iterable[tuple[str, str]]) -> None:
        """The last chunks of these requests, each at its port, have left the stage."""
        for request_id, port in last:
            ports = self._open.get(request_id)
            if ports is not None:
                ports.discard(port)
                if not ports:
                    del self._open[request_id]
