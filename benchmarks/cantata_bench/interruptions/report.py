"""Sums up what the cases did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cantata_bench.interruptions.cases import InterruptionCase
from cantata_bench.interruptions.run import CaseOutcome

FALSE_STOPS_GOAL = MISSED_GOAL = 0.05
SILENT_GOAL_S = 0.1


def describe_outcomes(found: Sequence[CaseOutcome]) -> str:
    """Markdown: wrong outcomes of each kind with their goals, times, and the wrong ones by name."""
    lines = ["| | cases | wrong | goal |", "|-|-|-|-|"]
    for name, kinds, should_stop, goal in (
        ("false stops", ("backchannel", "noise"), False, FALSE_STOPS_GOAL),
        ("of these: backchannels", ("backchannel",), False, FALSE_STOPS_GOAL),
        ("of these: noises", ("noise",), False, FALSE_STOPS_GOAL),
        ("missed interruptions", ("interruption",), True, MISSED_GOAL),
    ):
        ones = [one for one in found if one.case.kind in kinds]
        wrong = sum(one.stopped != should_stop for one in ones)
        share = wrong / max(1, len(ones))
        judged = f"{'met' if share <= goal else 'missed'} ({goal:.0%})"
        lines.append(f"| {name} | {len(ones)} | {wrong} ({share:.1%}) | {judged} |")
    lines += ["", "| interruptions | p50 | p95 | goal |", "|-|-|-|-|"]
    stopped = [one for one in found if one.case.stops and one.recognized_s is not None]
    recognized = [one.recognized_s for one in stopped if one.recognized_s is not None]
    silent = [one.silent_s for one in stopped]
    whole = [one.recognized_s + one.silent_s for one in stopped if one.recognized_s is not None]
    for name, values, limit_s in (
        ("first sound to being recognized", recognized, None),
        ("being recognized to the last sound", silent, SILENT_GOAL_S),
        ("first sound to the last sound of the answer", whole, None),
    ):
        if not values:
            continue
        p50, p95 = 1000 * np.percentile(np.array(values), [50, 95])
        met = p95 <= 1000 * limit_s if limit_s is not None else None
        judged = "" if limit_s is None else f"{'met' if met else 'missed'} ({1000 * limit_s:g} ms)"
        lines.append(f"| {name} | {p50:.0f} ms | {p95:.0f} ms | {judged} |")
    wrong_ones = [one.case for one in found if one.stopped != one.case.stops]
    lines += ["", *map(_name, wrong_ones)]
    return "\n".join(lines).rstrip()


def _name(case: InterruptionCase) -> str:
    return (
        f"- wrong: {case.kind} {case.what!r}, {case.voice}, {case.level_db:+g} dB, seed {case.seed}"
    )
