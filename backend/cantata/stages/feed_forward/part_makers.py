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

    A single maker works in the caller's thread, since nothing can be gained by another.

    Args:
        count: of parts.
        clock: seconds, monotonic.
    """

    def __init__(self, count: int, clock: Callable[[], float]) -> None:
        self._count, self._clock = count, clock
        self._threads = ThreadPoolExecutor(count, "part-maker") if count > 1 else None
        self._making: dict[str, Future[MadePart]] = {}

    @property
    def requests(self) -> Collection[str]:
        """Ids of the requests whose parts are being made, or are made and not taken yet."""
        return self._making.keys()

    @property
    def has_room(self) -> bool:
        """Whether another part can be started."""
        return len(self._making) < self._count

    def start(self, request_id: str, make: Callable[[], Pcm | None]) -> None:
        """Begin a request's part; there is room, and the request has no other one.

        Args:
            request_id: whose part it is.
            make: makes it; what it raises beside `CantataError` comes out of `wait`.
        """
        task = partial(self._make, make, at_once=len(self._making) + 1)
        if self._threads is not None:
            self._making[request_id] = self._threads.submit(task)
            return
        future = self._making[request_id] = Future[MadePart]()
        future.set_result(task())

    def wait(self) -> dict[str, MadePart]:
        """Wait until at least one of the started parts is made, and return all that are."""
        done = wait(self._making.values(), return_when=FIRST_COMPLETED).done
        names = [name for name, future in self._making.items() if future in done]
        return {name: self._making.pop(name).result() for name in names}

    def close(self) -> None:
        """Wait for what is being made, and end the threads."""
        if self._threads is not None:
            self._threads.shutdown()
        self._making.clear()

    def _make(self, make: Callable[[], Pcm | None], at_once: int) -> MadePart:
        begun_s = self._clock()
        try:
            result: Pcm | CantataError | None = make()
        except CantataError as error:
            result = error
        return MadePart(result, (self._clock() - begun_s) / at_once)
