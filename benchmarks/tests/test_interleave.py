"""Loads in turns and repetitions: what is requested from which server, and what counts."""

from __future__ import annotations

import pytest
from made_up import load

from cantata_bench import interleave
from cantata_bench.interleave import TURNS, RepeatBudget, in_turns, merged
from cantata_bench.results import LoadResult, LoadSpec

SPEC = LoadSpec(kind="closed", streams=1, seconds=6.0, warm_up_s=3.0)


@pytest.fixture(autouse=True)
def always_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interleave, "wait_for_calm", lambda: None)


class Servers:
    """Two servers; which requests they got, and which of those turns were disturbed."""

    def __init__(self, disturbed: set[int]) -> None:
        self.asked: list[str] = []
        self.seconds = 0.0
        self._disturbed = disturbed

    def measure(self, name: str, spec: LoadSpec) -> LoadResult:
        number = len(self.asked)
        self.asked.append(name)
        self.seconds += spec.seconds
        found = load(1, 0.04 + number, 7.0)
        said = "other processes took 30% of the CPU" if number in self._disturbed else ""
        return found.model_copy(update={"disturbance": said})

    def compare(self, left: int = 100) -> tuple[LoadResult, LoadResult]:
        return in_turns(
            SPEC,
            lambda spec: self.measure("a", spec),
            lambda spec: self.measure("b", spec),
            RepeatBudget(lambda said: None, left),
        )


def test_two_servers_are_measured_in_turns() -> None:
    servers = Servers(set())
    first, second = servers.compare()
    assert servers.asked == ["a", "b"] * TURNS
    assert servers.seconds == pytest.approx(2 * SPEC.seconds)
    assert first.spec == second.spec == SPEC
    assert [r.ttfp_s for r in first.requests[::4]] == [0.04, 2.04, 4.04]
    assert [r.ttfp_s for r in second.requests[::4]] == [1.04, 3.04, 5.04]
    assert not first.doubt
    assert not second.doubt


def test_a_pair_that_was_disturbed_is_measured_again() -> None:
    servers = Servers({3})
    first, second = servers.compare()
    assert servers.asked == ["a", "b"] * (TURNS + 1)
    assert [r.ttfp_s for r in first.requests[::4]] == [0.04, 4.04, 6.04]
    assert first.doubt == second.doubt == ""


def test_what_was_never_calm_is_in_doubt() -> None:
    servers = Servers(set(range(100)))
    first, _ = servers.compare()
    assert servers.asked == ["a", "b"] * TURNS * 3
    assert first.doubt == "other processes took 30% of the CPU"


def test_a_run_on_a_machine_that_is_never_calm_ends() -> None:
    servers = Servers(set(range(100)))
    servers.compare(left=2)
    assert servers.asked == ["a", "b"] * (TURNS + 2)


def test_parts_add_up() -> None:
    one, other = load(16, 0.1, 6.0), load(16, 0.3, 8.0)
    whole = merged(SPEC, [one, other])
    assert whole.summary is not None
    assert whole.summary.throughput_x == 7.0
    assert whole.summary.ttfp.p50 == pytest.approx(0.2)
    assert (whole.packets, whole.audio_s, whole.wall_s) == (200, 16.0, 4.0)
    assert {p.name: round(p.cpu_s, 3) for p in whole.processes} == {
        "api": 0.4,
        "cantata:talker:0": 2.0,
    }
    assert whole.cpu_per_audio_s == one.cpu_per_audio_s
    assert whole.doubt == "the client fell behind by 1 ms"


def test_repetitions_end() -> None:
    found = iter(["busy", "busy", "calm", "never asked"])
    patience = RepeatBudget(print)
    assert patience.repeated(lambda: next(found), lambda one: one * (one == "busy")) == "calm"
    busy = iter(["busy 1", "busy 2", "busy 3", "never asked"])
    assert patience.repeated(lambda: next(busy), str) == "busy 3"
