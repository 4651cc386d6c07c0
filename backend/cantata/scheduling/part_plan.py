"""Whose part of sound is made next, where each request's sound is made part by part.

The listener who runs out first comes first. A listener without sound starts as soon as everyone
else can spare the time: after its first part, all the others' next parts and its own second one
must still arrive in time. WHY not by a fixed reserve: a part that takes 15 ms on one machine takes
80 ms on another, and a crowd's next parts add up.
Nothing here knows a model or reads a clock: times come in as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cantata.scheduling.playout_buffers import GIVEN_UP_S

IN_TIME_S = 0.04
"""A part is in time if it is made this long before its listener needs it: it must still be sent,
and other work on the machine may come between."""
_FADING = 0.95
"""Decay per part of the same kind: after 14 of them a slow one counts half."""
_KINDS = 4
"""A request's first part, second, third, and all others. The first includes the plan of its
sentence, and later parts are longer."""


@dataclass(frozen=True, slots=True)
class PendingPart:
    """The next part of one request."""

    request_id: str
    number: int
    """Its place among the request's parts, from 0."""
    playout_deadline_s: float | None
    """When its listener has played everything; None: it has no sound yet."""
    batch: bool = False
    """Of a file render, which waits until no listener wants anything."""


class PartPlan:
    """Chooses parts, by how long earlier ones took."""

    def __init__(self) -> None:
        self._seconds = dict[int, float]()
        """By kind."""
        self._first_sound_s = math.inf

    def record(self, number: int, seconds: float, sound_s: float) -> None:
        """A part was made.

        Args:
            number: its place among its request's parts, from 0.
            seconds: how long that took.
            sound_s: how long it sounds.
        """
        kind = min(number, _KINDS - 1)
        self._seconds[kind] = max(self._seconds.get(kind, 0.0) * _FADING, seconds)
        if number == 0 and sound_s > 0:
            self._first_sound_s = min(self._first_sound_s / _FADING, sound_s)

    def choose(
        self, parts: Sequence[PendingPart], now_s: float, making: Sequence[PendingPart] = ()
    ) -> PendingPart:
        """The part to make now.

        Args:
            parts: at least one; of those without sound, the longest waiting first.
            now_s: on the clock of the deadlines.
            making: those that are being made.
        """
        in_order = sorted(parts, key=lambda part: (part.batch, _compute_deadline(part)))
        listeners = [part for part in in_order if not part.batch]
        newcomer = next((part for part in listeners if part.playout_deadline_s is None), None)
        if newcomer is not None and self._can_wait(listeners, now_s, self._sum_up(making)):
            return newcomer
        return in_order[0]

    def fits_beside(self, part: PendingPart, making: Sequence[PendingPart], now_s: float) -> bool:
        """Whether those that are being made are still in time if another one slows them: then all
        are ready when they would be ready one after the other.

        Args:
            part: the other one.
            making: those that are being made.
            now_s: on the clock of the deadlines.
        """
        ready_s = now_s + self._sum_up((*making, part))
        return not any(
            now_s + self._expect(one.number) <= _compute_deadline(one) - IN_TIME_S < ready_s
            for one in making
        )

    def _sum_up(self, parts: Sequence[PendingPart]) -> float:
        return sum(self._expect(part.number) for part in parts)

    def _can_wait(self, listeners: Sequence[PendingPart], now_s: float, making_s: float) -> bool:
        """Whether all these get their next parts in time after the first part of another one.

        Args:
            listeners: by their deadlines.
            now_s: on the clock of the deadlines.
            making_s: that the parts take which are being made.
        """
        ready_s = now_s + making_s + self._expect(0)
        needs = [
            (part.playout_deadline_s, self._expect(part.number))
            for part in listeners
            # A listener who waits for something broken holds nobody up.
            if part.playout_deadline_s is not None and part.playout_deadline_s > now_s - GIVEN_UP_S
        ]
        second_s = self._expect(1)
        if second_s <= self._first_sound_s - IN_TIME_S:  # otherwise no order helps it
            needs.append((ready_s + self._first_sound_s, second_s))
        for deadline_s, seconds in sorted(needs):
            ready_s += seconds
            if ready_s > deadline_s - IN_TIME_S:
                return False
        return True

    def _expect(self, number: int) -> float:
        """Seconds that a part takes; as long as the one before it, until one was measured."""
        kinds = range(min(number, _KINDS - 1), -1, -1)
        return next((self._seconds[kind] for kind in kinds if kind in self._seconds), 0.0)


def _compute_deadline(part: PendingPart) -> float:
    return math.inf if part.playout_deadline_s is None else part.playout_deadline_s
