"""The recognition stage: whose window is next, partial transcripts, aborts, faults of one."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest

from cantata.config import RecognitionDeployment
from cantata.contract.data.errors import (
    CantataError,
    InvalidAudio,
    InvalidRequest,
    Overloaded,
    ProtocolViolation,
    RequestFailed,
)
from cantata.contract.data.transcripts import (
    SPEECH_RATE,
    SoundPiece,
    Transcript,
    TranscriptUpdate,
)
from cantata.contract.model.pipeline import TRANSCRIPT
from cantata.contract.model.recognizer import SpeechWindow
from cantata.stages.recognition.stage import NICENESS_OF_FILES, RecognitionStage

DEADLINE_S = 30.0
Result = tuple[str, str, bool]
"""Request, its transcript or the name of its error, and whether it has ended."""


class Listing:
    """Says which second of which window each sample is from; notes every batch."""

    max_window_s = 5.0
    gains_by_batching = True

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.gate: threading.Event | None = None

    def recognize(self, windows: Sequence[SpeechWindow]) -> Sequence[Any]:
        self.batches.append([f"{window.inputs} {len(window.samples)}" for window in windows])
        if self.gate is not None:
            assert self.gate.wait(DEADLINE_S)
        return [self._one(window) for window in windows]

    def _one(self, window: SpeechWindow) -> Any:
        match window.inputs:
            case "crash":
                raise ValueError("overflow")
            case "refused":
                return InvalidAudio("too loud")
            case "odd":
                return "some text"
        text = f"{window.inputs} {' '.join(str(round(float(one))) for one in window.samples)}"
        return TranscriptUpdate(np.zeros(0, np.int32), Transcript(text.strip()))


def named(name: str) -> Any:
    """The input of `Listing`."""
    return name


def build_stage(
    model: Listing,
    *,
    slots: int = 8,
    max_batch: int = 1,
    load_for_files: Callable[[], Listing] | None = None,
) -> RecognitionStage:
    deployment = RecognitionDeployment(slots=slots, max_batch=max_batch)
    return RecognitionStage(model, deployment, load_for_files)


def feed(
    stage: RecognitionStage, name: str, *samples: float, asks: bool = False, final: bool = False
) -> None:
    stage.extend(name, SoundPiece(np.array(samples, np.float32), asks), final=final)


def add(stage: RecognitionStage, name: str, *samples: float, **options: bool) -> None:
    """A window with its first sound."""
    stage.add(name, named(name), batch=options.pop("batch", False))
    feed(stage, name, *samples, **options)


def step(stage: RecognitionStage) -> list[Result]:
    made = stage.step()
    found: list[Result] = []
    for chunk in made.chunks:
        assert chunk.port == TRANSCRIPT
        assert isinstance(chunk.payload, TranscriptUpdate)
        found.append((chunk.request_id, chunk.payload.transcript.text, chunk.final))
    return found + [(name, type(error).__name__, True) for name, error in made.failures]


def run(stage: RecognitionStage) -> list[Result]:
    """Steps until there is no more work."""
    found = []
    while stage.has_work():
        found += step(stage)
    return found


@contextmanager
def threaded(stage: RecognitionStage) -> Iterator[int]:
    """The descriptor that says when a result is there."""
    descriptor = stage.start_thread(nullcontext)
    try:
        yield descriptor
    finally:
        stage.close()


def wait_for_result(stage: RecognitionStage, descriptor: int) -> None:
    while not stage.has_work():
        assert select.select([descriptor], [], [], DEADLINE_S)[0]
        os.eventfd_read(descriptor)


def run_threads(stage: RecognitionStage, descriptor: int, results: int) -> list[Result]:
    """Steps until there are so many."""
    found: list[Result] = []
    while len(found) < results:
        wait_for_result(stage, descriptor)
        found += step(stage)
    return found


def test_a_window_is_recognized_once_it_is_complete() -> None:
    model = Listing()
    stage = build_stage(model)
    add(stage, "a", 1, 2)
    feed(stage, "a", 3)
    assert not stage.has_work()
    assert stage.get_counts() == {"requests": 1, "seconds": 0}
    feed(stage, "a", final=True)
    assert run(stage) == [("a", "a 1 2 3", True)]
    assert stage.get_counts() == {"requests": 0, "seconds": 0}


def test_speakers_go_before_files_whole_windows_before_partial_ones_then_the_first() -> None:
    stage = build_stage(Listing())
    add(stage, "file", 1, batch=True, final=True)
    add(stage, "partial 2", 1, asks=True)
    add(stage, "partial 1", 1, asks=True)
    add(stage, "whole 2", 1, final=True)
    add(stage, "whole 1", 1, final=True)
    order = [name for name, _, _ in run(stage)]
    assert order == ["whole 2", "whole 1", "partial 2", "partial 1", "file"]


def test_who_asks_again_keeps_his_turn() -> None:
    model = Listing()
    stage = build_stage(model)
    add(stage, "often", 1, asks=True)
    add(stage, "once", 1, asks=True)
    feed(stage, "often", 2, asks=True)
    assert run(stage) == [("often", "often 1 2", False), ("once", "once 1", False)]


def test_a_partial_covers_all_that_has_come_and_is_replaced_by_the_next() -> None:
    model = Listing()
    stage = build_stage(model)
    add(stage, "a", 1, asks=True)
    feed(stage, "a", 2, asks=True)
    assert run(stage) == [("a", "a 1 2", False)]
    feed(stage, "a", 3)
    assert run(stage) == [], "nobody has asked"
    feed(stage, "a", asks=True)
    assert run(stage) == [("a", "a 1 2 3", False)]
    feed(stage, "a", 4, final=True)
    assert run(stage) == [("a", "a 1 2 3 4", True)]
    assert model.batches == [["a 2"], ["a 3"], ["a 4"]]


def test_chunks_of_a_window_are_numbered() -> None:
    stage = build_stage(Listing())
    add(stage, "a", 1, asks=True)
    (first,) = stage.step().chunks
    feed(stage, "a", 2, final=True)
    (last,) = stage.step().chunks
    assert [(chunk.index, chunk.final) for chunk in (first, last)] == [(0, False), (1, True)]


def test_a_complete_window_that_is_recognized_already_ends_without_another_call() -> None:
    model = Listing()
    stage = build_stage(model)
    add(stage, "a", 1, asks=True)
    assert run(stage) == [("a", "a 1", False)]
    feed(stage, "a", final=True)
    assert run(stage) == [("a", "a 1", True)]
    assert model.batches == [["a 1"]]


def test_a_window_without_sound_has_a_transcript() -> None:
    stage = build_stage(Listing())
    add(stage, "a", final=True)
    assert run(stage) == [("a", "a", True)]


def test_a_window_that_is_too_long_is_refused_and_freed() -> None:
    stage = build_stage(Listing())
    stage.add("a", named("a"), batch=False)
    whole = np.zeros(5 * SPEECH_RATE, np.float32)
    stage.extend("a", SoundPiece(whole), final=False)
    with pytest.raises(InvalidRequest, match=r"5\.0 s of sound; valid: up to 5 s"):
        feed(stage, "a", 1, final=True)
    assert stage.get_counts()["requests"] == 0
    feed(stage, "a", 1, final=True)  # what was on its way
    assert run(stage) == []


def test_slots_are_held_until_the_end() -> None:
    stage = build_stage(Listing(), slots=1)
    assert stage.capacity.slots == 1
    add(stage, "a", 1)
    with pytest.raises(Overloaded):
        stage.add("b", named("b"), batch=False)
    stage.abort("a")
    stage.abort("a")
    add(stage, "b", 1)
    with pytest.raises(ProtocolViolation):
        stage.add("b", named("b"), batch=False)
    feed(stage, "b", final=True)
    run(stage)
    with pytest.raises(ProtocolViolation):
        stage.add("c", None, batch=False)
    add(stage, "c", 1)


def test_windows_are_recognized_together_up_to_the_limit() -> None:
    model = Listing()
    stage = build_stage(model, max_batch=2)
    for name in "abc":
        add(stage, name, 1, final=True)
    run(stage)
    assert model.batches == [["a 1", "b 1"], ["c 1"]]


def test_a_model_that_gains_nothing_gets_one_window_at_a_time() -> None:
    model = Listing()
    model.gains_by_batching = False
    stage = build_stage(model, max_batch=2)
    add(stage, "a", 1, final=True)
    add(stage, "b", 1, final=True)
    run(stage)
    assert model.batches == [["a 1"], ["b 1"]]


@pytest.mark.parametrize(
    ("fault", "error"),
    [("crash", RequestFailed), ("refused", InvalidAudio), ("odd", RequestFailed)],
)
def test_a_faulty_window_leaves_the_others_of_its_batch(
    fault: str, error: type[CantataError]
) -> None:
    stage = build_stage(Listing(), max_batch=3)
    for name in ("a", fault, "b"):
        add(stage, name, 1, final=True)
    assert sorted(run(stage)) == sorted(
        [("a", "a 1", True), ("b", "b 1", True), (fault, error.__name__, True)]
    )
    assert stage.get_counts()["requests"] == 0


def test_a_thread_recognizes_while_sound_comes() -> None:
    model = Listing()
    model.gate = threading.Event()
    stage = build_stage(model)
    with threaded(stage) as descriptor:
        add(stage, "a", 1, asks=True)
        assert step(stage) == [], "it has begun"
        assert not stage.has_work()
        feed(stage, "a", 2)
        add(stage, "b", 1, final=True)
        assert not stage.has_work(), "the thread is at work"
        model.gate.set()
        wait_for_result(stage, descriptor)
        assert step(stage) == [("a", "a 1", False)]
        wait_for_result(stage, descriptor)
        assert step(stage) == [("b", "b 1", True)]
        assert not stage.has_work(), "of the second sample, nobody has asked"


def test_what_is_asked_and_completed_meanwhile_needs_no_other_call() -> None:
    model = Listing()
    model.gate = threading.Event()
    stage = build_stage(model)
    with threaded(stage) as descriptor:
        add(stage, "a", 1, asks=True)
        add(stage, "b", 1, asks=True)
        step(stage)
        feed(stage, "a", final=True)
        feed(stage, "b", asks=True)
        model.gate.set()
        wait_for_result(stage, descriptor)
        assert step(stage) == [("a", "a 1", True)]
        wait_for_result(stage, descriptor)
        assert step(stage) == [("b", "b 1", False)]
        feed(stage, "b", 2)
        assert not stage.has_work(), "the question has had its answer"
        assert model.batches == [["a 1"], ["b 1"]]


def test_an_abort_while_it_is_recognized_frees_the_window_at_once() -> None:
    model = Listing()
    model.gate = threading.Event()
    stage = build_stage(model, slots=1)
    with threaded(stage) as descriptor:
        add(stage, "a", 1, final=True)
        step(stage)
        stage.abort("a")
        assert stage.get_counts()["requests"] == 0
        stage.add("a", named("again"), batch=False)  # another one with its id
        feed(stage, "a", 7, final=True)
        model.gate.set()
        wait_for_result(stage, descriptor)
        assert step(stage) == [], "the first window's words are nobody's"
        wait_for_result(stage, descriptor)
        assert step(stage) == [("a", "again 7", True)]


def test_a_window_that_failed_and_is_aborted_is_not_reported() -> None:
    model = Listing()
    model.gate = threading.Event()
    stage = build_stage(model)
    with threaded(stage) as descriptor:
        add(stage, "crash", 1, final=True)
        step(stage)
        model.gate.set()
        wait_for_result(stage, descriptor)
        stage.abort("crash")
        assert step(stage) == []


def test_windows_of_another_rank_are_not_in_a_batch() -> None:
    """They would make the others wait."""
    model = Listing()
    stage = build_stage(model, max_batch=8)
    add(stage, "file", 1, batch=True, final=True)
    add(stage, "partial", 1, asks=True)
    add(stage, "whole", 1, final=True)
    add(stage, "another file", 1, batch=True, final=True)
    run(stage)
    assert model.batches == [["whole 1"], ["partial 1"], ["file 1", "another file 1"]]


def test_a_speaker_waits_for_no_file() -> None:
    speakers, files = Listing(), Listing()
    files.gate = threading.Event()
    stage = build_stage(speakers, load_for_files=lambda: files)
    with threaded(stage) as descriptor:
        add(stage, "file", 1, batch=True, final=True)
        add(stage, "file 2", 2, batch=True, final=True)
        assert step(stage) == []
        add(stage, "a", 1, final=True)
        assert run_threads(stage, descriptor, 1) == [("a", "a 1", True)]
        assert not stage.has_work(), "the files' thread is at work"
        files.gate.set()
        expected = [("file", "file 1", True), ("file 2", "file 2 2", True)]
        assert run_threads(stage, descriptor, 2) == expected
    assert (speakers.batches, files.batches) == ([["a 1"]], [["file 1"], ["file 2 1"]])


def test_no_file_begins_while_a_speaker_s_words_are_found() -> None:
    speakers, files = Listing(), Listing()
    speakers.gate = threading.Event()
    stage = build_stage(speakers, load_for_files=lambda: files)
    with threaded(stage) as descriptor:
        add(stage, "a", 1, final=True)
        add(stage, "file", 1, batch=True, final=True)
        step(stage)
        assert not stage.has_work()
        speakers.gate.set()
        expected = [("a", "a 1", True), ("file", "file 1", True)]
        assert run_threads(stage, descriptor, 2) == expected


def test_files_have_a_copy_of_the_model_once_there_is_one() -> None:
    files = Listing()
    loads: list[Listing] = []

    def load() -> Listing:
        loads.append(files)
        if len(loads) == 1:
            raise MemoryError("no room")
        return files

    stage = build_stage(Listing(), load_for_files=load)
    add(stage, "a", 1, final=True)
    run(stage)
    assert not loads
    add(stage, "file", 1, batch=True, final=True)
    assert run(stage) == [("file", "RequestFailed", True)]
    for name in ("file 2", "file 3"):
        add(stage, name, 1, batch=True, final=True)
        assert run(stage) == [(name, f"{name} 1", True)]
    assert len(loads) == 2


class Ranking(Listing):
    """Notes the niceness of the thread that it works in, and of one that it started before."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()
        self._own = ThreadPoolExecutor(1)
        self._own.submit(int).result()

    def recognize(self, windows: Sequence[SpeechWindow]) -> Sequence[Any]:
        self.seen |= {read_niceness(), self._own.submit(read_niceness).result()}
        self._own.shutdown()
        return super().recognize(windows)


def read_niceness() -> int:
    """Of this thread."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_files_leave_the_cpu_to_others() -> None:
    """A runtime computes in threads that it starts when it is loaded: those, too."""
    made: list[Ranking] = []

    def load() -> Ranking:
        made.append(Ranking())
        return made[-1]

    before = read_niceness()
    stage = RecognitionStage(load(), RecognitionDeployment(), load)
    with threaded(stage) as descriptor:
        for batch in (False, True):
            add(stage, str(batch), 1, batch=batch, final=True)
            run_threads(stage, descriptor, 1)
    speakers, files = made
    assert speakers.seen == {before}
    assert files.seen == {min(before + NICENESS_OF_FILES, 19)}
    assert read_niceness() == before
