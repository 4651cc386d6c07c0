"""Responses that later requests may retrieve and continue."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from cachetools import TTLCache

from cantata.api.responses.objects import OutputItem, ResponseObject
from cantata.contract.data.errors import ResponseNotFound

KEPT_S = 3600
MAX_CHARACTERS = 16 << 20
"""Most characters of all that is kept."""
_EACH = 1024
"""Counted for each besides, so that their number is bounded, too."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class KeptResponse:
    """A response with the conversation up to its end."""

    response: ResponseObject
    messages: Sequence[dict[str, Any]]
    """As of POST /v1/chat/completions, without instructions."""
    size: int
    """Characters."""


class ResponseStore:
    """The latest responses of one server, each for an hour; the oldest go first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: TTLCache[str, KeptResponse] = TTLCache(
            MAX_CHARACTERS, KEPT_S, timer=clock, getsizeof=lambda one: one.size + _EACH
        )
        self._by_item = WeakValueDictionary[str, KeptResponse]()
        """Those that are kept, by the ids of their items."""

    def keep(self, response: ResponseObject, messages: Sequence[dict[str, Any]]) -> None:
        """Keep one; what is too long is not kept."""
        size = len(response.model_dump_json()) + len(str(messages))
        if size + _EACH <= MAX_CHARACTERS:
            kept = KeptResponse(response, messages, size)
            self._kept[response.id] = kept
            self._by_item.update((item.id, kept) for item in response.output)

    def find(self, response_id: str, param: str | None = None) -> KeptResponse:
        """A kept one. Raises ResponseNotFound: none has this id, or it has been forgotten."""
        kept = self._kept.get(response_id)
        if kept is None:
            raise ResponseNotFound(
                f"no response has the id {response_id!r}; each is kept for an hour at most", param
            )
        return kept

    def find_item(self, item_id: str, param: str) -> OutputItem:
        """An item of a kept response. Raises ResponseNotFound: as `find`."""
        kept = self._by_item.get(item_id)
        if kept is None or kept.response.id not in self._kept:
            raise ResponseNotFound(
                f"no response that is kept has an item with the id {item_id!r}", param
            )
        return next(item for item in kept.response.output if item.id == item_id)

    def delete(self, response_id: str) -> None:
        """Forget one. Raises ResponseNotFound: as `find`."""
        self.find(response_id)
        del self._kept[response_id]
