"""The results of a soak run, as figures, and whether its checks passed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .faults import ENTRY_FAULTS, STAGE_FAULTS
from .listeners import Heard
from .watching import Footprint

_MAX_MORE_DESCRIPTORS = 16
"""Connections that are kept open between two requests."""
_REJECTED = "rate_limit_exceeded"
"""Not a fault: a stage that has just restarted may have fewer places for a moment."""
_MAX_GROWTH = 1.25
"""Limit, as a multiple of a process's memory before the first fault."""


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault and its effects."""

    fault: str
    began_s: float
    ready_s: float
    """When the server accepted requests again."""

    def touches(self, heard: Heard) -> bool:
        """Whether it may have ended this request."""
        if heard.ended_s < self.began_s or heard.began_s > self.ready_s:
            return False
        came_meanwhile = heard.began_s > self.began_s
        return self.fault in STAGE_FAULTS or (self.fault in ENTRY_FAULTS and came_meanwhile)


@dataclass(frozen=True, slots=True)
class Soak:
    """One run."""

    minutes: float
    seed: int
    listeners: int
    injected: Sequence[Injected]
    heard: Sequence[Heard]
    before: Footprint
    after: Footprint
    answers: Sequence[tuple[float, float]]
    """When `/health`, `/metrics` and `/ready` were asked, and how long each answer took."""

    @property
    def untouched(self) -> list[Heard]:
        """Requests that no fault may have ended."""
        return [h for h in self.heard if not any(fault.touches(h) for fault in self.injected)]

    def slowest_answer_s(self, *, without_descriptors: bool) -> float:
        """While the server had no descriptor for a new connection, or otherwise."""
        scarce = [one for one in self.injected if one.fault in ENTRY_FAULTS]
        return max(
            (
                took_s
                for at_s, took_s in self.answers
                if without_descriptors
                == any(one.began_s <= at_s <= one.ready_s + took_s for one in scarce)
            ),
            default=0.0,
        )

    @property
    def broken_promises(self) -> list[str]:
        """The failed checks. Times are left out: on a shared machine they vary."""
        broken = []
        wrong = sum(not heard.same_bits for heard in self.heard)
        if wrong:
            broken.append(f"{wrong} requests had other samples than alone")
        failed = [h.error for h in self.untouched if h.error not in ("", _REJECTED)]
        if failed:
            broken.append(f"{len(failed)} requests failed without a fault: {sorted(set(failed))}")
        if self.after.held:
            broken.append(f"{self.after.held:g} things are still held")
        more = self.after.descriptors - self.before.descriptors
        if more > _MAX_MORE_DESCRIPTORS:
            broken.append(f"{more} more descriptors than before")
        for name, size in self.after.memory_bytes.items():
            if size > _MAX_GROWTH * self.before.memory_bytes[name]:
                broken.append(f"{name} grew to {size / 2**20:.0f} MiB")
        return broken

    def markdown(self) -> str:
        """The figures, as a section."""
        untouched = self.untouched
        gaps = [heard.stood_still_s for heard in untouched if heard.stood_still_s > 0]
        failed = sum(heard.error not in ("", _REJECTED) for heard in untouched)
        rejected = sum(heard.error == _REJECTED for heard in untouched)
        wrong = sum(not heard.same_bits for heard in self.heard)
        lines = [
            f"{self.minutes:g} minutes, seed {self.seed}, {self.listeners} live listeners "
            f"(80% of the places), {len(self.injected)} faults, {len(self.heard)} requests.",
            "",
            "| fault | times | requests ended | last error after | ready again, median / longest |",
            "|-|-|-|-|-|",
            *(self._row(fault) for fault in sorted({one.fault for one in self.injected})),
            "",
            "| | |",
            "|-|-|",
            f"| requests with other samples than alone | {wrong} |",
            f"| requests that no fault could end | {len(untouched)} |",
            f"| of those, failed | {failed} |",
            f"| of those, rejected with 429 | {rejected} |",
            f"| of those, a gap with 100 ms of reserve | {len(gaps)}, the longest "
            f"{1000 * max(gaps, default=0.0):.0f} ms |",
            f"| slowest of {len(self.answers)} answers of `/health`, `/metrics` and `/ready` | "
            f"{1000 * self.slowest_answer_s(without_descriptors=False):.0f} ms |",
            "| slowest while the server had no descriptor for a new connection | "
            f"{1000 * self.slowest_answer_s(without_descriptors=True):.0f} ms |",
            f"| still held at the end | {self.after.held:g} |",
            f"| descriptors before, after | {self.before.descriptors}, {self.after.descriptors} |",
            *(
                f"| memory of {name} before, after | {self.before.memory_bytes[name] / 2**20:.0f}, "
                f"{size / 2**20:.0f} MiB |"
                for name, size in self.after.memory_bytes.items()
            ),
        ]
        return "\n".join(lines) + "\n"

    def _row(self, fault: str) -> str:
        of_kind = [one for one in self.injected if one.fault == fault]
        told = [
            heard.ended_s - one.began_s
            for one in of_kind
            for heard in self.heard
            if heard.error and one.touches(heard) and heard.began_s < one.began_s
        ]
        down = sorted(one.ready_s - one.began_s for one in of_kind)
        last = f"{max(told):.2f} s" if told else ""
        again = f"{down[len(down) // 2]:.1f} / {down[-1]:.1f} s" if fault in STAGE_FAULTS else ""
        return f"| {fault} | {len(of_kind)} | {len(told)} | {last} | {again} |"
