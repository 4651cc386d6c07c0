"""Admits a picture, or an answer that is written among pictures, if it will be done in time, by a
forecast of the plan itself.

Speech has places, because every listener needs a share of each second. Pictures have none: work is
done one after the other, and what matters is when. Nothing here knows a model or reads a clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cantata.contract.data.errors import InvalidRequest, Overloaded
from cantata.contract.process.messages import ForwardCost
from cantata.scheduling.step_plan import JobView, finish_times

NO_SLOT, TOO_LATE = "no_slot", "too_late"
_MIN_RETRY_S = 1.0
_UNKNOWN_RETRY_S = 5.0
"""Seconds to retry after, before any forward was measured."""


@dataclass(frozen=True, slots=True)
class StepLimits:
    slots: int
    """Most jobs at the same time."""
    max_wait_s: float
    """Longest time for which others may hold up a job, beyond the time that it takes alone."""
    max_tokens: int
    """Most tokens of one forward."""


class StepAdmission:
    """Admits requests, and counts them.

    Args:
        limits: what is admitted.
    """

    def __init__(self, limits: StepLimits) -> None:
        self.limits = limits
        self.refused: Counter[str] = Counter({NO_SLOT: 0, TOO_LATE: 0})

    def check(
        self,
        job: JobView,
        others: Sequence[JobView],
        cost: ForwardCost | None,
        now_s: float,
        *,
        besides_s: float = 0.0,
    ) -> None:
        """Decide on a new request. File renders wait as long as it takes, but leave half of the
        slots to others.

        Args:
            job: the newcomer.
            others: all that were admitted and are not done.
            cost: of a forward; None: not measured yet.
            now_s: on the jobs' clock.
            besides_s: what it takes before and after its steps.

        Raises:
            Overloaded: it would be done too late; tells when it would not be.
            InvalidRequest: it takes longer than its caller waits, even alone.
        """
        self.check_slots(others, cost, now_s, batch=job.batch)
        if cost is None:
            return
        alone_s = job.left_s(cost) + besides_s
        if now_s + alone_s > job.deadline_s:
            raise InvalidRequest(
                f"this picture takes about {alone_s:.1f} s even alone; ask for a smaller one, for "
                f"fewer steps, or wait longer",
                "deadline_s",
            )
        done_s = self._forecast((*others, job), cost, now_s)[job.request_id] + besides_s
        late_s = done_s - job.deadline_s
        if not job.batch:
            late_s = max(late_s, done_s - now_s - alone_s - self.limits.max_wait_s)
        if late_s > 0:
            self.refused[TOO_LATE] += 1
            soon_s = done_s - now_s
            state = f"{_describe_work(others)}; it would be done in {soon_s:.0f} s"
            raise Overloaded(state, max(late_s, _MIN_RETRY_S))

    def check_slots(
        self,
        others: Sequence[JobView],
        cost: ForwardCost | None,
        now_s: float,
        *,
        batch: bool = False,
    ) -> None:
        """The part of `check` that does not depend on the request.

        Raises:
            Overloaded: every slot that it may have is taken.
        """
        slots = max(1, self.limits.slots // 2) if batch else self.limits.slots
        if len(others) >= slots:
            raise self._build_rejection(others, cost, now_s)

    def _build_rejection(
        self, others: Sequence[JobView], cost: ForwardCost | None, now_s: float
    ) -> Overloaded:
        self.refused[NO_SLOT] += 1
        retry_s = _UNKNOWN_RETRY_S
        if cost is not None:
            retry_s = min(self._forecast(others, cost, now_s).values()) - now_s
        state = f"{_describe_work(others)}, as many as may be"
        return Overloaded(state, max(retry_s, _MIN_RETRY_S))

    def _forecast(
        self, jobs: Sequence[JobView], cost: ForwardCost, now_s: float
    ) -> dict[str, float]:
        return finish_times(jobs, cost, self.limits.max_tokens, now_s)


def _describe_work(jobs: Sequence[JobView]) -> str:
    texts = sum(job.writes for job in jobs)
    pictures = f"{len(jobs) - texts} pictures are being drawn"
    return f"{pictures} and {texts} answers written" if texts else pictures
