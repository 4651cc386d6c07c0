"""Requests that a replica has in quarantine: they do not travel to the next one."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from cantata.cluster.bodies import encode
from cantata.contract.data.errors import Quarantined

MAX_KEPT = 1024


class Refusals:
    """The latest of one model's, by content."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Quarantined] = OrderedDict()

    def check(self, request: object) -> None:
        """Raises Quarantined if a replica has refused this request as such."""
        if not self._kept:
            return
        error = self._kept.get(_digest(request))
        if error is not None:
            raise Quarantined(error.message, error.param)

    def add(self, request: object, error: Quarantined) -> None:
        """A replica has refused it."""
        self._kept[_digest(request)] = error
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)


def _digest(request: object) -> bytes:
    digest = hashlib.sha256()
    for part in encode(request):
        digest.update(part)
    return digest.digest()
