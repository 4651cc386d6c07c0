"""The feed-forward stage: batches, kept results, equal inputs once, faults of one input."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

from cantata.config import FeedForwardDeployment
from cantata.contract.data.chunks import Chunk, Codes, Payload, Rows
from cantata.contract.data.errors import (
    CantataError,
    InvalidAudio,
    InvalidRequest,
    Overloaded,
    ProtocolViolation,
    RequestFailed,
)
from cantata.contract.model.feed_forward import Fed
from cantata.contract.process.messages import ReuseReport
from cantata.contract.process.stage import StepResult
from cantata.stages.feed_forward import FeedForwardStage

PORTS: Mapping[str, type[Payload]] = {"vector": Rows, "codes": Codes}
ROWS = 1024
"""Of one output: 8 KiB of vectors, 4 KiB of codes."""
OUTPUT_BYTES = ROWS * 12


@dataclass(frozen=True)
class Sound:
    """What the model below is given."""

    number: int
    fault: str = ""
    is_kept: bool = True


class Doubling:
    """Makes two payloads of a number, and records every batch."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def key(self, inputs: Sound) -> bytes | None:
        if inputs.fault == "unreadable":
            raise InvalidRequest("not a sound", "input")
        return b"%d" % inputs.number if inputs.is_kept else None

    def run(self, batch: Sequence[Sound]) -> Sequence[Mapping[str, Payload] | CantataError]:
        self.batches.append([inputs.number for inputs in batch])
        return [self._one(inputs) for inputs in batch]

    def _one(self, inputs: Sound) -> Mapping[str, Payload] | CantataError:
        match inputs.fault:
            case "refused":
                return InvalidAudio("too short")
            case "crash":
                raise ValueError("overflow")
            case "half":
                return {"vector": Rows(np.zeros((1, 2), np.float32))}
        vector = np.full((ROWS, 2), 2.0 * inputs.number, np.float32)
        return {"vector": Rows(vector), "codes": Codes(np.full((ROWS, 1), inputs.number, np.int32))}


@pytest.fixture
def model() -> Doubling:
    return Doubling()


Build = Callable[..., FeedForwardStage]


@pytest.fixture
def build(model: Doubling) -> Build:
    def make(**deployment: int) -> FeedForwardStage:
        return FeedForwardStage(model, PORTS, FeedForwardDeployment(**{"slots": 32} | deployment))  # type: ignore[arg-type]

    return make


def add(stage: FeedForwardStage, name: str, sound: Sound, *, batch: bool = False) -> None:
    stage.add(name, sound, batch=batch)


def numbers(result: StepResult) -> dict[str, int]:
    """The number that each request got; every port has one whole chunk."""
    found = {}
    for chunk in result.chunks:
        assert (chunk.index, chunk.final) == (0, True)
        assert type(chunk.payload) is PORTS[chunk.port]
        if isinstance(chunk.payload, Codes):
            found[chunk.request_id] = int(chunk.payload.values[0, 0])
    assert len(result.chunks) == len(PORTS) * len(found)
    return found


def test_it_makes_every_port_of_each_request_and_holds_nothing_then(build: Build) -> None:
    stage = build()
    add(stage, "a", Sound(3))
    assert stage.has_work()
    assert stage.get_counts() == {"requests": 1}
    result = stage.step()
    assert numbers(result) == {"a": 3}
    (vector,) = [c.payload for c in result.chunks if isinstance(c.payload, Rows)]
    assert (vector.values == 6.0).all()
    assert not stage.has_work()
    assert stage.get_counts() == {"requests": 0}


def test_sixteen_equal_requests_are_computed_once(build: Build, model: Doubling) -> None:
    stage = build()
    for number in range(16):
        add(stage, f"r{number}", Sound(5))
    assert numbers(stage.step()) == {f"r{number}": 5 for number in range(16)}
    assert model.batches == [[5]]
    assert stage.reuse == ReuseReport(encodes=1, hits=0, joined=15, kept_bytes=OUTPUT_BYTES)
    add(stage, "later", Sound(5))
    assert numbers(stage.step()) == {"later": 5}
    assert stage.reuse == ReuseReport(encodes=1, hits=1, joined=15, kept_bytes=OUTPUT_BYTES)


def test_inputs_without_a_key_are_neither_shared_nor_kept(build: Build, model: Doubling) -> None:
    stage = build()
    for name in ("a", "b"):
        add(stage, name, Sound(5, is_kept=False))
    assert numbers(stage.step()) == {"a": 5, "b": 5}
    assert model.batches == [[5, 5]]
    assert stage.reuse == ReuseReport(encodes=2, hits=0, joined=0, kept_bytes=0)


def test_a_batch_has_a_most_and_listeners_come_before_files(build: Build, model: Doubling) -> None:
    stage = build(max_batch=2)
    add(stage, "file", Sound(1), batch=True)
    for number in (2, 3, 4):
        add(stage, f"r{number}", Sound(number))
    add(stage, "joins the file", Sound(1))
    while stage.has_work():
        stage.step()
    assert model.batches == [[1, 2], [3, 4]]  # somebody listens to the first one by now
    add(stage, "file", Sound(7), batch=True)
    for number in (8, 9):
        add(stage, f"r{number}", Sound(number))
    while stage.has_work():
        stage.step()
    assert model.batches[2:] == [[8, 9], [7]]


def test_kept_results_are_found_before_anything_is_computed(build: Build) -> None:
    stage = build()
    add(stage, "first", Sound(1))
    stage.step()
    add(stage, "new", Sound(2))
    add(stage, "known", Sound(1))
    assert numbers(stage.step()) == {"known": 1}
    assert numbers(stage.step()) == {"new": 2}


def test_an_error_reaches_all_who_wait_and_is_not_kept(build: Build, model: Doubling) -> None:
    stage = build()
    add(stage, "good", Sound(1))
    for name in ("a", "b"):
        add(stage, name, Sound(2, "refused"))
    result = stage.step()
    assert numbers(result) == {"good": 1}
    assert {name: type(error) for name, error in result.failures} == dict.fromkeys(
        ("a", "b"), InvalidAudio
    )
    assert stage.get_counts() == {"requests": 0}
    add(stage, "again", Sound(2))
    assert numbers(stage.step()) == {"again": 2}
    assert model.batches == [[1, 2], [2]]
    assert stage.reuse == ReuseReport(encodes=3, hits=0, joined=1, kept_bytes=2 * OUTPUT_BYTES)


@pytest.mark.parametrize(
    ("fault", "message"), [("crash", "overflow"), ("half", "its ports are .*'codes': 'Codes'")]
)
def test_a_fault_of_one_input_fails_its_request_alone(
    build: Build, fault: str, message: str
) -> None:
    stage = build()
    for number in range(3):
        add(stage, f"r{number}", Sound(number, fault if number == 1 else ""))
    result = stage.step()
    assert numbers(result) == {"r0": 0, "r2": 2}
    ((name, error),) = result.failures
    assert name == "r1"
    with pytest.raises(RequestFailed, match=message):
        raise error


def test_aborting_one_who_waits_leaves_the_others(build: Build, model: Doubling) -> None:
    stage = build()
    for name in ("a", "b"):
        add(stage, name, Sound(1))
    add(stage, "alone", Sound(2))
    stage.abort("a")
    stage.abort("alone")
    stage.abort("nobody")
    assert numbers(stage.step()) == {"b": 1}
    assert model.batches == [[1]]  # what nobody waits for is not computed
    add(stage, "hit", Sound(1))
    stage.abort("hit")
    assert not stage.has_work()
    assert stage.get_counts() == {"requests": 0}


def test_memory_for_kept_results_is_bounded(build: Build, model: Doubling) -> None:
    fitting = (1 << 20) // OUTPUT_BYTES
    stage = build(kept_mib=1, slots=1)
    for number in range(fitting + 1):
        add(stage, "fills", Sound(number))
        stage.step()
        if number == fitting - 1:
            add(stage, "uses the oldest", Sound(0))
            stage.step()
    assert stage.reuse.kept_bytes == fitting * OUTPUT_BYTES
    for number in (0, 1):  # the one that was used lately is there, the least recent one is not
        add(stage, "r", Sound(number))
        stage.step()
    assert model.batches[-2:] == [[fitting], [1]]
    nothing = build(kept_mib=0)
    add(nothing, "r", Sound(1))
    nothing.step()
    assert nothing.reuse.kept_bytes == 0


class Gate(Doubling):
    """Computes once it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = threading.Event()

    def run(self, batch: Sequence[Sound]) -> Sequence[Mapping[str, Payload] | CantataError]:
        assert self.opened.wait(60)
        return super().run(batch)


def in_thread(stage: FeedForwardStage, marks: list[str]) -> Callable[[], None]:
    """Let a stage compute in a thread; the result waits until it has finished."""

    @contextmanager
    def working() -> Iterator[None]:
        marks.append("in")
        yield
        marks.append("out")

    descriptor = stage.start_thread(working)

    def wait() -> None:
        assert select.select([descriptor], [], [], 10)[0]
        os.eventfd_read(descriptor)

    return wait


def test_known_results_joins_and_aborts_do_not_wait_for_a_computation() -> None:
    model, marks = Gate(), list[str]()
    stage = FeedForwardStage(model, PORTS, FeedForwardDeployment(slots=8))
    wait = in_thread(stage, marks)
    add(stage, "first", Sound(1))
    assert numbers(stage.step()) == {}
    model.opened.set()
    wait()
    assert numbers(stage.step()) == {"first": 1}
    assert not stage.has_work()

    model.opened.clear()
    add(stage, "slow", Sound(2))
    assert numbers(stage.step()) == {}
    assert not stage.has_work()
    add(stage, "known", Sound(1))
    add(stage, "joins", Sound(2))
    add(stage, "leaves", Sound(2))
    add(stage, "next", Sound(3))
    stage.abort("leaves")
    assert numbers(stage.step()) == {"known": 1}
    assert not stage.has_work()
    assert stage.get_counts() == {"requests": 3}

    model.opened.set()
    wait()
    assert numbers(stage.step()) == {"slow": 2, "joins": 2}
    assert stage.has_work()
    model.opened.clear()
    assert numbers(stage.step()) == {}
    model.opened.set()
    wait()
    assert numbers(stage.step()) == {"next": 3}
    assert stage.get_counts() == {"requests": 0}
    assert model.batches == [[1], [2], [3]]
    assert marks == ["in", "out"] * 3
    stage.close()


def test_what_all_have_left_is_kept_all_the_same() -> None:
    model = Gate()
    stage = FeedForwardStage(model, PORTS, FeedForwardDeployment(slots=8))
    wait = in_thread(stage, [])
    add(stage, "leaves", Sound(2))
    stage.step()
    stage.abort("leaves")
    model.opened.set()
    wait()
    assert numbers(stage.step()) == {}
    add(stage, "later", Sound(2))
    assert numbers(stage.step()) == {"later": 2}
    assert model.batches == [[2]]
    stage.close()


def test_what_cannot_be_taken_is_rejected(build: Build) -> None:
    stage = build(slots=2)
    with pytest.raises(ProtocolViolation):
        stage.add("nothing", None, batch=False)
    with pytest.raises(InvalidRequest):
        add(stage, "unreadable", Sound(1, "unreadable"))
    add(stage, "a", Sound(1))
    with pytest.raises(ProtocolViolation):
        add(stage, "a", Sound(1))
    add(stage, "b", Sound(1))
    with pytest.raises(Overloaded):
        add(stage, "c", Sound(1))
    assert numbers(stage.step()) == {"a": 1, "b": 1}


class Adding:
    """Adds what arrives to a number; it may await nothing."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def awaits(self, inputs: Sound) -> tuple[str, ...]:
        return () if inputs.fault == "alone" else ("left", "right")

    def key(self, inputs: Fed) -> None:
        return None

    def run(self, batch: Sequence[Fed]) -> Sequence[Mapping[str, Payload]]:
        self.batches.append([fed.inputs.number for fed in batch])
        return [self._one(fed) for fed in batch]

    def _one(self, fed: Fed) -> Mapping[str, Payload]:
        arrived = [p.values for p in fed.arrived.values() if isinstance(p, Rows)]
        total = np.full((1, 1), fed.inputs.number + sum(a.sum() for a in arrived), np.float32)
        return {"vector": Rows(total), "codes": Codes(total.astype(np.int32))}


@pytest.fixture
def fed() -> FeedForwardStage:
    return FeedForwardStage(Adding(), PORTS, FeedForwardDeployment(slots=2))


def arriving(
    name: str, port: str, number: int, index: int = 0, *, final: bool = True
) -> Chunk[Payload]:
    return Chunk(name, port, index, Rows(np.full((1, 1), number, np.float32)), final)


def test_what_edges_bring_is_awaited_whole(fed: FeedForwardStage) -> None:
    add(fed, "a", Sound(1))
    add(fed, "b", Sound(2, "alone"))
    assert numbers(fed.step()) == {"b": 2}
    fed.receive([arriving("a", "left", 10, final=False), arriving("a", "right", 100)])
    assert not fed.has_work()
    assert fed.get_counts() == {"requests": 1}
    fed.receive([arriving("a", "left", 1000, 1)])
    assert numbers(fed.step()) == {"a": 1111}
    assert fed.get_counts() == {"requests": 0}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (arriving("a", "middle", 1), "unexpected chunk of port 'middle'"),
        (arriving("a", "left", 1, 1), "expected chunk 0 of 'left', got 1"),
    ],
)
def test_a_wrong_chunk_fails_its_own_request(
    fed: FeedForwardStage, wrong: Chunk[Payload], message: str
) -> None:
    add(fed, "a", Sound(1))
    add(fed, "b", Sound(2))
    fed.receive([wrong, arriving("b", "left", 1), arriving("b", "right", 1)])
    result = fed.step()
    ((name, error),) = result.failures
    assert name == "a"
    assert message in str(error)
    while "b" not in numbers(result):
        result = fed.step()
    assert fed.get_counts() == {"requests": 0}


def test_a_request_that_awaits_something_has_a_slot_and_can_be_aborted(
    fed: FeedForwardStage,
) -> None:
    add(fed, "a", Sound(1))
    add(fed, "b", Sound(1))
    with pytest.raises(Overloaded):
        add(fed, "c", Sound(1))
    fed.abort("a")
    fed.receive([arriving("a", "left", 1)])
    add(fed, "c", Sound(1))
    assert fed.get_counts() == {"requests": 2}
