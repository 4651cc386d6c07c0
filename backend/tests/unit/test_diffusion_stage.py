"""The diffusion stage: slots, inputs that arrive, forwards, progress, previews, aborts."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from select import select

import numpy as np
import pytest

from cantata.config import DiffusionDeployment
from cantata.contract.data.chunks import Chunk, Codes, Payload, Progress, Rows
from cantata.contract.data.errors import CantataError, Overloaded, ProtocolViolation, RequestFailed
from cantata.contract.process.messages import ForwardCost
from cantata.contract.process.stage import StepResult
from cantata.stages.diffusion import DiffusionStage
from cantata.stages.diffusion.forwards import Leaves
from cantata.stages.diffusion.jobs import choose_preview_steps
from cantata.stages.diffusion.stage import REPORT_S
from tiny_painter.inputs import TinyCanvas
from tiny_painter.scribe import TinyScribe, TinyTalk
from tiny_painter.stages import TinyDenoiser, TinyJob

CONDITION = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def model() -> TinyDenoiser:
    return TinyDenoiser()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stage(model: TinyDenoiser, clock: Clock) -> DiffusionStage:
    return DiffusionStage(model, DiffusionDeployment(slots=4), clock)


def canvas(seed: int = 0, steps: int = 4, **more: object) -> TinyCanvas:
    return TinyCanvas(32, 16, seed, steps, **more)  # type: ignore[arg-type]


def condition(request_id: str, port: str = "condition") -> Chunk[Payload]:
    return Chunk(request_id, port, 0, Rows(CONDITION), final=True)


def begin(stage: DiffusionStage, request_id: str, inputs: TinyCanvas) -> None:
    stage.add(request_id, inputs, batch=False)
    stage.receive([condition(request_id)])


def steps(stage: DiffusionStage) -> Iterator[StepResult]:
    while stage.has_work():
        yield stage.step()


def run(stage: DiffusionStage) -> tuple[list[Chunk[Payload]], list[tuple[str, CantataError]]]:
    results = list(steps(stage))
    return [c for r in results for c in r.chunks], [f for r in results for f in r.failures]


def of(chunks: Sequence[Chunk[Payload]], request_id: str, port: str) -> list[Chunk[Payload]]:
    return [c for c in chunks if (c.request_id, c.port) == (request_id, port)]


def latents(chunks: Sequence[Chunk[Payload]], request_id: str) -> np.ndarray:
    [chunk] = of(chunks, request_id, "latents")
    assert chunk.final
    assert isinstance(chunk.payload, Rows)
    return chunk.payload.values


def test_a_picture_begins_once_everything_has_arrived(stage: DiffusionStage) -> None:
    stage.add("a", canvas(has_references=True), batch=False)
    assert not stage.has_work()
    stage.receive([condition("a")])
    assert not stage.has_work()
    stage.receive([condition("a", "references")])
    chunks, failures = run(stage)
    assert not failures
    assert latents(chunks, "a").shape == (8, 3)
    assert stage.get_counts() == {"requests": 0}


def test_progress_is_reported_of_every_step_with_previews_where_they_belong(
    stage: DiffusionStage,
) -> None:
    begin(stage, "a", canvas(steps=6, previews=2))
    progress = of(run(stage)[0], "a", "progress")
    payloads = [chunk.payload for chunk in progress]
    assert [chunk.index for chunk in progress] == list(range(7))
    assert [p.step for p in payloads if isinstance(p, Progress)] == list(range(7))
    assert [p.step for p in payloads if isinstance(p, Progress) and p.pixels.size] == [2, 4]
    assert [chunk.final for chunk in progress] == [False] * 6 + [True]


class TinyWriter(TinyDenoiser):
    """Writes the numbers of its steps, and nothing in the last one."""

    def written(self, job: TinyJob) -> np.ndarray:
        tokens = [job.done] if job.done < job.canvas.steps else []
        return np.array(tokens, np.int32)


def test_a_model_that_writes_leaves_a_token_a_step_and_no_latents(clock: Clock) -> None:
    stage = DiffusionStage(
        TinyWriter(),
        DiffusionDeployment(slots=4),
        clock,
        leaves=Leaves(latents=False, text=True),
        shows_progress=False,
    )
    begin(stage, "a", canvas(steps=4))
    begin(stage, "b", canvas(steps=2))
    chunks, failures = run(stage)
    assert not failures
    for name, count in (("a", 4), ("b", 2)):
        texts = of(chunks, name, "codes")
        assert [chunk.index for chunk in texts] == list(range(count))
        assert [chunk.final for chunk in texts] == [False] * (count - 1) + [True]
        codes = np.concatenate([c.payload.values for c in texts if isinstance(c.payload, Codes)])
        assert codes.tolist() == [[step] for step in range(1, count)]
    assert not [chunk for chunk in chunks if chunk.port != "codes"]
    assert stage.get_counts() == {"requests": 0}


class TinyThinker(TinyDenoiser):
    """Reads in its first step, writes in the next two, then draws."""

    def draws(self, inputs: TinyCanvas) -> bool:
        return True

    def written(self, job: TinyJob) -> np.ndarray:
        return np.array([job.done] if job.done in (2, 3) else [], np.int32)


def test_a_model_that_thinks_leaves_its_words_at_once_and_its_latents_at_the_end(
    clock: Clock,
) -> None:
    stage = DiffusionStage(
        TinyThinker(), DiffusionDeployment(slots=4), clock, leaves=Leaves(text=True)
    )
    begin(stage, "a", canvas(steps=5))
    results = [[c for c in result.chunks if c.port != "progress"] for result in steps(stage)]
    # The first one begins.
    assert [[chunk.port for chunk in chunks] for chunks in results] == [
        *([], [], ["codes"], ["codes"], []),
        ["codes", "latents"],
    ]
    texts = of([chunk for chunks in results for chunk in chunks], "a", "codes")
    assert [(c.index, c.final) for c in texts] == [(0, False), (1, False), (2, True)]
    assert [c.payload.values.tolist() for c in texts if isinstance(c.payload, Codes)] == [
        [[2]],
        [[3]],
        [],
    ]


@pytest.fixture
def writing(clock: Clock) -> DiffusionStage:
    """Draws and answers."""
    return DiffusionStage(
        TinyScribe(), DiffusionDeployment(slots=4, max_tokens=8), clock, leaves=Leaves(text=True)
    )


def test_a_text_among_pictures_leaves_its_tokens_alone(writing: DiffusionStage) -> None:
    begin(writing, "picture", canvas(1))
    writing.add("text", TinyTalk("said", max_tokens=9), batch=False)
    chunks, failures = run(writing)
    assert not failures
    assert {chunk.port for chunk in chunks if chunk.request_id == "text"} == {"codes"}
    texts = of(chunks, "text", "codes")
    assert [(c.index, c.final) for c in texts] == [(n, n == 4) for n in range(5)]
    codes = [c.payload.values for c in texts if isinstance(c.payload, Codes)]
    assert [chr(code) for code in np.concatenate(codes)[:, 0]] == list("said")
    assert latents(chunks, "picture").size
    (end,) = of(chunks, "picture", "codes")
    assert end.final
    assert isinstance(end.payload, Codes)
    assert not len(end.payload.values)


def test_a_text_that_waits_gives_signs_of_life(writing: DiffusionStage, clock: Clock) -> None:
    """Behind a picture that came first; once it is written, its tokens are signs enough."""
    begin(writing, "picture", canvas(1, steps=20))
    writing.add("text", TinyTalk("a" * 300, max_tokens=300), batch=False)
    before: list[Chunk[Payload]] = []
    for result in steps(writing):
        clock.now_s += 0.4 * REPORT_S
        before += of(result.chunks, "text", "codes")
        if of(result.chunks, "picture", "latents"):
            break
    signs = [c for c in before if isinstance(c.payload, Codes) and not len(c.payload.values)]
    assert 5 <= len(signs) <= 10
    assert not any(chunk.final for chunk in signs)
    after = of(run(writing)[0], "text", "codes")
    assert len(after) + len(before) - len(signs) == 301
    assert [chunk.index for chunk in (*before, *after)] == list(range(len(before) + len(after)))


def test_a_text_counts_as_long_as_texts_usually_are(writing: DiffusionStage) -> None:
    """A client that gives no limit has the model's; few texts are so long, and pictures that take
    longer than the usual one come after it."""
    begin(writing, "picture", canvas(1, steps=400))
    writing.add("text", TinyTalk("said", max_tokens=100_000), batch=False)
    chunks = run(writing)[0]
    ends = {chunk.request_id: place for place, chunk in enumerate(chunks) if chunk.final}
    assert ends["text"] < ends["picture"]


def test_a_model_may_find_that_it_needs_fewer_steps(
    stage: DiffusionStage, model: TinyDenoiser, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = 6
    monkeypatch.setattr(model, "steps", lambda job: planned + 3 if job.done < 2 else planned)
    begin(stage, "a", canvas(steps=planned, previews=1))
    chunks, failures = run(stage)
    assert not failures
    assert latents(chunks, "a").shape == (8, 3)
    told = [chunk.payload for chunk in of(chunks, "a", "progress")]
    assert [(p.step, p.steps) for p in told if isinstance(p, Progress)] == [
        *((step, planned + 3) for step in range(2)),
        *((step, planned) for step in range(2, planned + 1)),
    ]
    assert [p.step for p in told if isinstance(p, Progress) and p.pixels.size] == [3]


@pytest.mark.parametrize(
    ("previews", "count", "expected"),
    [(0, 9, set()), (3, 20, {5, 10, 15}), (1, 2, {1}), (9, 4, {1, 2, 3}), (3, 1, set())],
)
def test_previews_are_spread_evenly(previews: int, count: int, expected: set[int]) -> None:
    assert choose_preview_steps(previews, count) == expected


def test_pictures_of_any_depth_share_a_forward_and_none_depends_on_it(
    stage: DiffusionStage, model: TinyDenoiser
) -> None:
    alone = {}
    for seed in range(3):
        begin(stage, "x", canvas(seed, steps=3 + seed))
        alone[seed] = latents(run(stage)[0], "x")
    model.forwards.clear()
    begin(stage, "0", canvas(0, steps=3))
    begun, *_ = [stage.step() for _ in range(2)]
    assert [c.port for c in begun.chunks] == ["progress"]
    begin(stage, "1", canvas(1, steps=4))
    begin(stage, "2", canvas(2, steps=5))
    chunks, _ = run(stage)
    for seed in range(3):
        np.testing.assert_array_equal(latents(chunks, f"{seed}"), alone[seed])


@pytest.mark.parametrize("done", range(4))
def test_an_aborted_picture_takes_part_in_no_further_forward(
    stage: DiffusionStage, model: TinyDenoiser, done: int
) -> None:
    begin(stage, "a", canvas(7))
    for _ in range(1 + done):
        stage.step()
    stage.abort("a")
    assert stage.get_counts() == {"requests": 0}
    assert not stage.has_work()
    assert len(model.forwards) == done
    stage.receive([condition("a")])
    assert not stage.has_work()


def test_a_wrong_chunk_fails_its_own_request(stage: DiffusionStage) -> None:
    stage.add("a", canvas(), batch=False)
    begin(stage, "b", canvas())
    stage.receive([condition("a", "sound")])
    chunks, [(request_id, error)] = run(stage)
    assert request_id == "a"
    assert "unexpected chunk of port 'sound'; awaited: ['condition']" in str(error)
    assert latents(chunks, "b").size


def test_the_slots_are_a_limit(stage: DiffusionStage) -> None:
    for number in range(4):
        stage.add(f"{number}", canvas(), batch=False)
    with pytest.raises(Overloaded):
        stage.add("e", canvas(), batch=False)
    stage.abort("0")
    stage.add("e", canvas(), batch=False)
    for wrong in ("e", "f"):
        with pytest.raises(ProtocolViolation):
            stage.add(wrong, None if wrong == "f" else canvas(), batch=False)


def test_a_fault_in_a_shared_forward_fails_one_picture_and_advances_the_others_once(
    stage: DiffusionStage,
) -> None:
    begin(stage, "x", canvas(1))
    alone = latents(run(stage)[0], "x")
    begin(stage, "a", canvas(1))
    begin(stage, "b", canvas(2, fault="CRASH"))
    chunks, [(request_id, error)] = run(stage)
    assert request_id == "b"
    assert isinstance(error, RequestFailed)
    np.testing.assert_array_equal(latents(chunks, "a"), alone)


def test_what_waits_is_reported_again_and_again(model: TinyDenoiser, clock: Clock) -> None:
    """Otherwise its request would end for want of any sign."""
    stage = DiffusionStage(model, DiffusionDeployment(max_tokens=8), clock)
    begin(stage, "short", canvas(2, steps=40))
    begin(stage, "long", canvas(1, steps=400))
    reports = 0
    for result in steps(stage):
        clock.now_s += 0.4 * REPORT_S
        reports += len(of(result.chunks, "long", "progress"))
        if of(result.chunks, "short", "latents"):
            break
    assert 10 <= reports <= 40


def test_the_cost_of_forwards_is_reported_once_it_is_known(stage: DiffusionStage) -> None:
    begin(stage, "a", canvas(steps=12, step_s=0.002))
    costs = [result.cost for result in steps(stage) if result.cost is not None]
    assert costs
    assert all(isinstance(cost, ForwardCost) for cost in costs)


def test_without_the_port_there_is_no_progress(model: TinyDenoiser) -> None:
    stage = DiffusionStage(model, DiffusionDeployment(), shows_progress=False)
    begin(stage, "a", canvas(previews=2))
    assert {chunk.port for chunk in run(stage)[0]} == {"latents"}


class Waiting(TinyDenoiser):
    """Its forwards end when they are allowed to."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_end = threading.Event(), threading.Event()

    def advance(self, jobs: Sequence[TinyJob]) -> Sequence[CantataError | None]:
        self.begun.set()
        assert self.may_end.wait(60)
        return super().advance(jobs)


@contextmanager
def unmarked() -> Iterator[None]:
    yield


def test_an_abort_does_not_wait_for_the_forward_that_is_computed() -> None:
    model = Waiting()
    stage = DiffusionStage(model, DiffusionDeployment(slots=1))
    descriptor = stage.start_thread(unmarked)
    begin(stage, "a", canvas(steps=1))
    while not model.begun.is_set():
        stage.step()
        select([descriptor], [], [], 0.05)
    stage.abort("a")
    assert stage.get_counts() == {"requests": 0}
    begin(stage, "b", canvas(5, steps=1))
    model.may_end.set()
    chunks: list[Chunk[Payload]] = []
    while stage.get_counts()["requests"]:
        select([descriptor], [], [], 10)
        if stage.has_work():
            chunks += stage.step().chunks
    assert {chunk.request_id for chunk in chunks} == {"b"}
    stage.close()
