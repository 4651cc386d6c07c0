"""How many replicas are wanted, and which of them are there."""

from __future__ import annotations

import pytest

from cantata.distributed.ray.membership import (
    FORGET_AFTER_S,
    Membership,
    MembershipTable,
    QueueDepth,
    ReplicaLoad,
    as_plain,
    from_plain,
    wanted,
)

IDLE = ReplicaLoad(10, 0, 0)


@pytest.mark.parametrize(
    ("loads", "now", "expected"),
    [
        ([IDLE], 1, 1),
        ([ReplicaLoad(10, 7, 0)], 1, 1),
        ([ReplicaLoad(10, 8, 0)], 1, 2),
        ([ReplicaLoad(10, 10, 18)], 1, 4),
        ([ReplicaLoad(10, 10, 0), ReplicaLoad(10, 4, 0)], 2, 2),
        ([ReplicaLoad(10, 10, 0), ReplicaLoad(10, 5, 0)], 2, 3),
        ([ReplicaLoad(10, 1, 0)] * 8, 8, 2),
        ([IDLE] * 3, 3, 1),
        ([ReplicaLoad(20, 14, 0), ReplicaLoad(10, 7, 0)], 2, 2),
        ([ReplicaLoad(0, 0, 5)], 2, 2),
        ([ReplicaLoad(0, 0, 0), ReplicaLoad(10, 8, 0)], 2, 2),
        ([], 4, 4),
    ],
)
def test_places_are_filled_to_seven_tenths(
    loads: list[ReplicaLoad], now: int, expected: int
) -> None:
    assert wanted(loads, 0.7, now) == expected


@pytest.mark.parametrize("fill", [0.1, 0.3, 0.7, 0.9, 1.0])
def test_an_exact_fill_needs_no_other_replica(fill: float) -> None:
    """Whatever the fraction is in binary."""
    for replicas in range(1, 40):
        load = ReplicaLoad(100, fill * 100, 0)
        assert wanted([load] * replicas, fill, replicas) == replicas


class Clock:
    now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


def test_a_replica_is_there_while_it_says_so() -> None:
    clock = Clock()
    table = MembershipTable(clock)
    table.announce("a", "h1:1", "solo", serving=True)
    table.announce("b", "h2:1", "solo", serving=False)
    assert table.read("e", {}).addresses == {"h1:1"}
    clock.now_s += FORGET_AFTER_S - 1
    table.announce("b", "h2:1", "solo", serving=True)
    assert table.read("e", {}).addresses == {"h1:1", "h2:1"}
    clock.now_s += 2
    assert table.read("e", {}).addresses == {"h2:1"}
    table.announce("b", "h2:1", "solo", serving=False)
    assert table.read("e", {}).addresses == set()


def test_a_new_directory_forgets_nobody_that_it_has_not_heard() -> None:
    clock = Clock()
    table, known = MembershipTable(clock), frozenset({"h1:1", "h2:1"})
    table.announce("c", "h3:1", "solo", serving=True)
    assert table.read("e", {}).merge_with(known) == {"h1:1", "h2:1", "h3:1"}
    clock.now_s += FORGET_AFTER_S
    table.announce("c", "h3:1", "solo", serving=True)
    clock.now_s += 0.1
    assert table.read("e", {}).merge_with(known) == {"h3:1"}


def test_what_waits_at_the_edges_is_shared_by_the_replicas_of_its_model() -> None:
    clock = Clock()
    table = MembershipTable(clock)
    table.read("e", {"solo": 4, "duet": 1})
    table.read("f", {"solo": 2})
    assert table.announce("a", "h1:1", "solo", serving=True) == QueueDepth(6, edges=2)
    assert table.announce("b", "h2:1", "solo", serving=True) == QueueDepth(3, edges=2)
    assert table.announce("c", "h3:1", "solo", serving=False) == QueueDepth(0, edges=2)
    assert table.announce("d", "h4:1", "duet", serving=True) == QueueDepth(1, edges=2)
    assert table.announce("d", "h4:1", "other", serving=True) == QueueDepth(0, edges=2)
    table.read("e", {})
    assert table.announce("a", "h1:1", "solo", serving=True) == QueueDepth(1, edges=2)
    clock.now_s += FORGET_AFTER_S + 1
    assert table.announce("a", "h1:1", "solo", serving=True) == QueueDepth(0, edges=0), (
        "they are gone"
    )


def test_a_message_of_it_says_the_same() -> None:
    present = Membership(frozenset({"h2:1", "h1:1"}), complete=True)
    assert from_plain(as_plain(present)) == present
