"""Requests that are in quarantine at a replica: they are not sent to the next one."""

from __future__ import annotations

from collections import OrderedDict

from cantata.contract.data.errors import Quarantined
from cantata.distributed.edge.crash_tracker import RequestFingerprint

MAX_KEPT = 1024


class Refusals:
    """The latest such requests for one model, by digest."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Quarantined] = OrderedDict()

    def check(self, asked: RequestFingerprint) -> None:
        """Raises Quarantined if a replica has refused this request as quarantined."""
        if not self._kept or asked.digest is None:
            return
        error = self._kept.get(asked.digest)
        if error is not None:
            raise Quarantined(error.message, error.param)

    def add(self, asked: RequestFingerprint, error: Quarantined) -> None:
        """A replica has refused it."""
        if asked.digest is None:
            return
        self._kept[asked.digest] = error
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
