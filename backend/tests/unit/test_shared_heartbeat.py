"""What can be read about a process that no longer answers."""

from __future__ import annotations

import os

import psutil
import pytest

from cantata.contract.data.errors import InvalidRequest
from cantata.ipc.shared_heartbeat import HeartbeatPhase, SharedHeartbeat, make_memory


def both_ends(slots: int = 2) -> tuple[SharedHeartbeat, SharedHeartbeat]:
    """The loop's and the server's."""
    memory = make_memory(slots)
    return SharedHeartbeat(os.dup(memory)), SharedHeartbeat(memory)


def test_the_server_sees_which_call_it_is_and_whom_it_is_about() -> None:
    loop, server = both_ends()
    assert server.read().phase is HeartbeatPhase.WAITING
    loop.hold("a", has_prompt=True)
    loop.hold("b", has_prompt=False)
    loop.record_frames("b", 3)
    assert loop.begin_step() is HeartbeatPhase.BEGINNING
    with loop.during(loop.begin_step()):
        snapshot = server.read()
        assert (snapshot.phase, snapshot.at_work_on, snapshot.alone) == (
            HeartbeatPhase.BEGINNING,
            {"a": 0, "b": 3},
            False,
        )
    loop.record_frames("a", 1)
    assert loop.begin_step() is HeartbeatPhase.STEADY
    with loop.during(HeartbeatPhase.BEGINNING, "c"):
        assert server.read().at_work_on == {"c": 0}
        assert server.read().alone
    snapshot = server.read()
    assert (snapshot.phase, snapshot.at_work_on, snapshot.alone) == (
        HeartbeatPhase.WAITING,
        {},
        False,
    )
    assert snapshot.number == 2
    loop.remove("a")
    loop.hold("d", has_prompt=True)
    assert server.read().frames == {"b": 3, "d": 0}
    assert loop.held == ("b", "d")


@pytest.mark.parametrize("compiles", [False, True])
def test_kernels_may_be_compiled_for_a_new_number_of_requests(*, compiles: bool) -> None:
    loop = SharedHeartbeat(make_memory(3), compiles=compiles)
    for name in "abc":
        loop.hold(name, has_prompt=False)
    new = HeartbeatPhase.BEGINNING if compiles else HeartbeatPhase.STEADY
    assert [loop.begin_step() for _ in range(2)] == [new, HeartbeatPhase.STEADY]
    loop.remove("b")
    assert [loop.begin_step() for _ in range(2)] == [new, HeartbeatPhase.STEADY]
    loop.hold("d", has_prompt=False)
    assert loop.begin_step() is HeartbeatPhase.STEADY
    loop.close()


def test_an_exception_that_ends_the_process_leaves_the_call_to_be_read() -> None:
    loop, server = both_ends()
    with pytest.raises(InvalidRequest), loop.during(HeartbeatPhase.BEGINNING, "refused"):
        raise InvalidRequest("one request's fault")
    assert server.read().phase is HeartbeatPhase.WAITING
    with pytest.raises(MemoryError), loop.during(HeartbeatPhase.BEGINNING, "deadly"):
        raise MemoryError
    assert server.read().at_work_on == {"deadly": 0}


def test_closing_gives_the_descriptor_back() -> None:
    before = psutil.Process().num_fds()
    for heartbeat in both_ends():
        heartbeat.read()
        heartbeat.close()
    assert psutil.Process().num_fds() == before


def test_more_requests_than_slots_are_left_out() -> None:
    loop, server = both_ends(slots=1)
    loop.hold("a", has_prompt=True)
    loop.hold("b", has_prompt=True)
    loop.record_frames("b", 1)
    assert server.read().frames == {"a": 0}


def test_the_longest_call_is_kept_by_kind() -> None:
    loop, server = both_ends()
    with loop.during(HeartbeatPhase.BEGINNING):
        pass
    with loop.during(HeartbeatPhase.STEADY):
        assert server.read().longest_s == 0.0
    with loop.during(HeartbeatPhase.BEGINNING):
        assert server.read().longest_s > 0.0


def test_of_two_calls_at_a_time_each_end_is_seen_and_the_last_is_the_end() -> None:
    loop, server = both_ends()
    files = loop.during(HeartbeatPhase.BEGINNING)
    with loop.during(HeartbeatPhase.BEGINNING):
        files.__enter__()
        both = server.read()
    one = server.read()
    assert one.phase is HeartbeatPhase.BEGINNING
    assert one.number > both.number, "what goes on is not taken for a hang"
    files.__exit__(None, None, None)
    assert server.read().phase is HeartbeatPhase.WAITING
