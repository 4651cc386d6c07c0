"""The last events of a session, some of which its client may not have received."""

from __future__ import annotations

import json
import sys
from collections import deque

from cantata.contract.data.errors import EventsLost

_NOTHING = ""
_HEAD = 256
"""Characters in which the id of an event is."""


class SentEvents:
    """Events in order, as texts, and which of them is the next to be written to a client.

    The last of those that were written are kept, since nothing says which of them arrived; those
    that were not are all kept: whoever adds them waits (`is_full`).
    """

    def __init__(self, max_bytes: int) -> None:
        """`max_bytes`: of events that were written, and of those that wait."""
        self._max_bytes = max_bytes
        self._texts: deque[str] = deque()
        self._first = 0
        """Number of the oldest that is kept; a session's first event is number 0."""
        self._next = 0
        """Number of the one to be written next."""
        self._forgotten = ""
        """Beginning of the last one that is not kept."""
        self._written_bytes = 0
        self._waiting_bytes = 0

    @property
    def next(self) -> int:
        return self._next

    @property
    def has_more(self) -> bool:
        return self._next < self._first + len(self._texts)

    @property
    def is_full(self) -> bool:
        """Whether more waits to be written than may be kept."""
        return self._waiting_bytes > self._max_bytes

    def add(self, text: str) -> int:
        """Append an event; returns its number."""
        self._texts.append(text)
        self._waiting_bytes += sys.getsizeof(text)
        return self._first + len(self._texts) - 1

    def peek(self) -> str:
        """The event to be written next; empty: it was withdrawn."""
        return self._texts[self._next - self._first]

    def advance(self) -> None:
        """The event to be written next was written."""
        size = sys.getsizeof(self.peek())
        self._waiting_bytes -= size
        self._written_bytes += size
        self._next += 1
        while self._written_bytes > self._max_bytes:
            oldest = self._texts.popleft()
            self._written_bytes -= sys.getsizeof(oldest)
            self._forgotten = oldest[:_HEAD]
            self._first += 1

    def withdraw(self, number: int) -> None:
        """Empty an event that its client need not get any more, if it was not written."""
        if self._next <= number < self._first + len(self._texts):
            self._waiting_bytes -= sys.getsizeof(self._texts[number - self._first])
            self._texts[number - self._first] = _NOTHING
            self._waiting_bytes += sys.getsizeof(_NOTHING)

    def find(self, event_id: str) -> int:
        """The number of an event. Raises EventsLost: it is not among those that are kept."""
        for index in reversed(range(len(self._texts))):
            if _has_id(self._texts[index], event_id):
                return self._first + index
        if _has_id(self._forgotten, event_id):
            return self._first - 1
        raise EventsLost(
            f"the events after {event_id[:64]!r} are not kept any more: a session keeps "
            f"{self._max_bytes >> 10} KiB of them; begin another session",
            "after",
        )

    def seek(self, event_id: str) -> None:
        """Begin again behind the event of this id: a client has received it, and none after it;
        errors as of `find`, after which nothing has changed."""
        self._next = self.find(event_id) + 1
        sizes = [sys.getsizeof(text) for text in self._texts]
        written = self._next - self._first
        self._written_bytes, self._waiting_bytes = sum(sizes[:written]), sum(sizes[written:])


def _has_id(event: str, event_id: str) -> bool:
    # Every event begins with its id.
    return event.startswith(f'{{"event_id":{json.dumps(event_id)},')
