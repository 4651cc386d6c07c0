"""The requests to a model, and how long they took."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import httpx

from cantata.config.plugins import LocatedModel
from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.request import PipelineRequest


@dataclass(frozen=True, slots=True)
class Taken:
    """Times of one request, in seconds from its sending."""

    first_s: float
    """Seconds to the first packet of sound, or to the first step of a picture."""
    whole_s: float
    amount: float
    """Seconds of sound, or pictures."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """Several rounds of as many requests at once."""

    first_p50_s: float
    first_max_s: float
    whole_p50_s: float
    rtf_p50: float
    """Median over the requests: seconds per unit of the amount."""
    per_second: float
    """The amount of all requests of a round, in the median round."""
    refused: int = 0
    """Requests that there was no room for."""


class PageWork(Protocol):
    """One kind of request, the same each time. It is pickled."""

    async def ask(self, http: httpx.AsyncClient) -> Taken | None:
        """Send one to a server; None: it had no room.

        Raises:
            httpx.HTTPStatusError: it was rejected for another reason.
        """
        ...

    def built(self, located: LocatedModel, ids: Sequence[str]) -> list[PipelineRequest]:
        """The same request, built for bare stages."""
        ...

    def begins(self, payload: Payload) -> bool:
        """Whether this is the first that a caller sees, if nothing came before it."""
        ...

    def amount(self, chunk: Chunk[Payload], sample_rate: int) -> float:
        """How much of it a chunk for the client is."""
        ...


def collect_rounds(consumed: Sequence[Sequence[Taken | None]]) -> Rounds:
    """Rounds as one line of figures.

    Raises:
        RuntimeError: there was no room for any request of a round.
    """
    rounds = [[one for one in found if one is not None] for found in consumed]
    if not all(rounds):
        raise RuntimeError("there was no room for any of the requests")
    every = [one for found in rounds for one in found]
    return Rounds(
        first_p50_s=statistics.median(one.first_s for one in every),
        first_max_s=max(one.first_s for one in every),
        whole_p50_s=statistics.median(one.whole_s for one in every),
        rtf_p50=statistics.median(one.whole_s / one.amount for one in every),
        per_second=statistics.median(
            sum(one.amount for one in found) / max(one.whole_s for one in found) for found in rounds
        ),
        refused=sum(map(len, consumed)) - len(every),
    )
