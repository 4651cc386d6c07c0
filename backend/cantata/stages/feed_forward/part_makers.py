"""Makes parts of several requests at the same time, each in a thread."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial

from cantata.contract.data.chunks import Pcm
from cantata.contract.data.errors import CantataError


@dataclass(frozen=True, slots=True)
class MadePart:
    """What came of one part."""

    result: Pcm | CantataError | None
    """None: the request's sound has ended."""
    seconds: float
    """How long it took; of two that were made at the same time, half as long."""


class PartMakers:
    """Up to `count` parts at the same time, one of each request.

    A part that is alone is made in the caller's thread: another one would gain nothing.

    Args:
        count: of parts.
        clock: seconds, monotonic.
    """

    def __init__(self, count: int, clock: Callable[[], float]) -> None:
        self._count, self._clock = count, clock
        self._threads = ThreadPoolExecutor(count, "part-maker")  # none is started before its task
        self._started: dict[str, Callable[[], MadePart]] = {}
        self._making: dict[str, Future[MadePart]] = {}

    @property
    def requests(self) -> Collection[str]:
        """Ids of the requests whose parts are being made, or are made and not taken yet."""
        return (*self._making, *self._started)

    @property
    def has_room(self) -> bool:
        """Whether another part can be started."""
        return len(self.requests) < self._count

    def start(self, request_id: str, make: Callable[[], Pcm | None]) -> None:
        """Have a request's part made from `wait` on; there is room, and the request has no other.

        Args:
            request_id: whose part it is.
            make: makes it; what it raises beside `CantataError` comes out of `wait`.
        """
        self._started[request_id] = partial(self._make, make, at_once=len(self.requests) + 1)

    def wait(self) -> dict[str, MadePart]:
        """Wait until at least one of the started parts is made, and return all that are."""
        started, self._started = self._started, {}
        if len(started) == 1 and not self._making:
            return {name: task() for name, task in started.items()}
        for name, task in started.items():
            self._making[name] = self._threads.submit(task)
        done = wait(self._making.values(), return_when=FIRST_COMPLETED).done
        names = [name for name, future in self._making.items() if future in done]
        return {name: self._making.pop(name).result() for name in names}

    def close(self) -> None:
        """Wait for what is being made, and end the threads."""
        self._threads.shutdown()
        self._making.clear()

    def _make(self, make: Callable[[], Pcm | None], at_once: int) -> MadePart:
        begun_s = self._clock()
        try:
            result: Pcm | CantataError | None = make()
        except CantataError as error:
            result = error
        return MadePart(result, (self._clock() - begun_s) / at_once)
