"""The loops of stages that share a process: which thread each has, and where its kernels go."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from cantata.ipc.shared_heartbeat import HeartbeatPhase
from cantata.stages.process.together import SWITCH_INTERVAL_S, ResidentStage, run_together
from stage_loops import heartbeat


class ShortLoop:
    """Does one thing, and is drained."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.run = work


def resident(name: str, work: Callable[[], None]) -> ResidentStage:
    loop: Any = ShortLoop(work)
    return ResidentStage(name, loop, heartbeat())


@pytest.fixture(autouse=True)
def usual_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def test_a_stage_alone_keeps_the_process_as_it_is() -> None:
    ran: list[threading.Thread] = []
    before = sys.getswitchinterval()
    run_together([resident("a", lambda: ran.append(threading.current_thread()))], on_gpu=True)
    assert ran == [threading.current_thread()]
    assert sys.getswitchinterval() == before


def test_a_fault_of_a_stage_alone_is_raised() -> None:
    def fail() -> None:
        raise MemoryError("as much as there is")

    with pytest.raises(MemoryError):
        run_together([resident("a", fail)], on_gpu=False)


def test_all_run_at_once_and_end_when_the_last_is_drained() -> None:
    both, ran = threading.Barrier(2, timeout=60), dict[str, threading.Thread]()

    def work() -> None:
        both.wait()
        ran[threading.current_thread().name] = threading.current_thread()

    run_together([resident("talker", work), resident("decoder", work)], on_gpu=False)
    assert ran.keys() == {threading.current_thread().name, "decoder"}
    assert not ran["decoder"].is_alive()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)


def test_on_a_gpu_the_second_has_a_stream_that_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What both have loaded is there before it begins."""
    events: list[str] = []

    @contextmanager
    def on_stream(priority: int) -> Iterator[None]:
        events.append(f"{threading.current_thread().name} on a stream of {priority}")
        yield

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: events.append("synchronized"))
    monkeypatch.setattr(torch.cuda, "Stream", lambda priority: priority)
    monkeypatch.setattr(torch.cuda, "stream", on_stream)
    began = threading.Event()

    def work(name: str) -> None:
        if name == "talker":
            assert began.wait(60)
        events.append(name)
        began.set()

    names = ("talker", "decoder")
    run_together([resident(name, lambda name=name: work(name)) for name in names], on_gpu=True)  # type: ignore[misc]
    assert events == ["synchronized", "decoder on a stream of -1", "decoder", "talker"]


def test_the_call_of_an_innocent_stage_is_no_evidence() -> None:
    beat = heartbeat()
    beat.hold("r", has_prompt=False)
    with beat.during(HeartbeatPhase.STEADY):
        assert beat.read().at_work_on == {"r": 0}
        beat.clear_call()
        assert beat.read().at_work_on == {}


@pytest.mark.parametrize(("guilty", "code"), [("talker", 1), ("decoder", 1), (None, 0)])
def test_a_fault_of_either_ends_the_process(guilty: str | None, code: int) -> None:
    """The other one would go on for ever. A server that has exited is no fault."""
    child = os.fork()
    if not child:

        def work(name: str) -> None:
            if name == guilty:
                raise MemoryError
            if guilty is None and name == "decoder":
                raise ConnectionError
            threading.Event().wait()

        stages = [
            resident(name, lambda name=name: work(name))  # type: ignore[misc]
            for name in ("talker", "decoder")
        ]
        run_together(stages, on_gpu=False)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code
