"""Three times as many listeners as have room, within a moment: the admitted have no gaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest

from cantata_bench.client import Target
from cantata_bench.load import measured_load
from cantata_bench.machine import in_own_process
from cantata_bench.measure import stampede
from cantata_bench.results import LoadSpec
from cantata_bench.summary import summarize
from tiers import scaled
from timed import timed

from .server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.level3]

SLOTS = 32
"""Slots of the deployment."""


@pytest.mark.long
@timed(one_sided=True)
def test_in_a_stampede_the_admitted_hear_no_gap(
    server: Server, figures: Callable[..., None]
) -> None:
    """Listeners that reconnect for each text, and one second after a rejection. The client
    has the server's cores; where it was late itself, nothing was measured."""
    texts: Literal["medium", "mixed"] = scaled("medium", "mixed")
    base = LoadSpec(kind="live", texts=texts, warm_up_s=2.0, seconds=4.0)
    *_, spec = stampede(SLOTS, base)
    report = in_own_process(measured_load, spec, Target(server.url), False)
    found = summarize(report.records, report.audio_in_window_s / spec.seconds)
    assert found is not None
    figures(
        load=spec.title,
        spoken=found.spoken,
        refusals=found.refusals,
        C0=f"{100 * found.continuous[0]:.1f}%",
        C50=f"{100 * found.continuous[1]:.1f}%",
        audio_s_per_s=f"{found.throughput_x:.1f}",
    )
    assert found.failed == 0
    assert found.spoken > SLOTS
    assert found.continuous[1] == 1.0
    assert found.continuous[0] >= 0.99  # of some 150, so one may have a gap; the goal is 99.5%
