"""The stage of a model that makes sound itself: parts, turns, credit, aborts and faults."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cantata.config import FeedForwardDeployment
from cantata.contract.data.chunks import Pcm, Rows, WordTiming
from cantata.contract.data.errors import ConfigError, Overloaded, ProtocolViolation, RequestFailed
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.stages.feed_forward.synthesis import SynthesisStage

RATE = 1000
PART = Pcm(np.ones((500, 1), np.float32))


class Parts:
    """Says so many parts; notes what it did."""

    sample_rate, channels = RATE, 1

    def __init__(self) -> None:
        self.log: list[str] = []

    def synthesize(self, inputs: Any) -> Iterator[Pcm]:
        name, parts = inputs
        try:
            for number in range(parts):
                self.log.append(f"{name}{number}")
                if name == "bad" and number == 1:
                    raise ValueError("broken")
                yield Pcm(PART.samples, (WordTiming(number, number / 2, number / 2 + 0.4),))
        finally:
            self.log.append(f"{name} ended")


class SlowParts(Parts):
    """Two at the same time; a request that is called `slow` is made once `go` is set."""

    is_concurrent = True

    def __init__(self) -> None:
        super().__init__()
        self.go, self.begun = threading.Event(), threading.Event()

    def synthesize(self, inputs: Any) -> Iterator[Pcm]:
        for part in super().synthesize(inputs):
            if inputs[0] == "slow":
                self.begun.set()
                assert self.go.wait(LIMIT_S)
            yield part


LIMIT_S = 30.0


def saying(name: str, parts: int) -> Any:
    """The input of `Parts`."""
    return name, parts


def build_stage(
    model: Any,
    *,
    slots: int = 4,
    credit_s: float = 30.0,
    clock: Callable[[], float] = lambda: 100.0,
) -> SynthesisStage:
    deployment = FeedForwardDeployment(slots=slots, credit_s=credit_s)
    return SynthesisStage(model, "sound", deployment, cores=2, clock=clock)


def steps(stage: SynthesisStage) -> list[tuple[str, int, int, bool]]:
    """Request, chunk, samples and whether it is the last one, until there is no more work."""
    made = []
    while stage.has_work():
        result = stage.step()
        made += [(c.request_id, c.index, c.payload.units, c.final) for c in result.chunks]
        made += [(request_id, -1, 0, True) for request_id, _ in result.failures]
    return made


def test_parts_leave_one_by_one_and_the_end_follows() -> None:
    model = Parts()
    stage = build_stage(model)
    stage.add("a", saying("a", 3), batch=False)
    assert model.log == [], "nothing is computed before its turn"
    first = stage.step()
    assert model.log == ["a0"], "the second part is not made before the first has left"
    (chunk,) = first.chunks
    assert isinstance(chunk.payload, Pcm)
    assert chunk.payload.words == (WordTiming(0, 0.0, 0.4),)
    assert steps(stage) == [("a", 1, 500, False), ("a", 2, 500, False), ("a", 3, 0, True)]
    assert set(stage.get_counts().values()) == {0}


def test_a_model_that_plans_when_it_is_called_is_called_when_it_is_its_turn() -> None:
    """Plans of a crowd would otherwise be made one after the other, while listeners run dry."""
    model = Parts()

    def synthesize(inputs: Any) -> list[Pcm]:
        model.log.append(f"plan {inputs[0]}")
        return [PART] * inputs[1]

    model.synthesize = synthesize  # type: ignore[method-assign,assignment]
    stage = build_stage(model)
    for name in ("a", "b"):
        stage.add(name, saying(name, 1), batch=False)
    assert model.log == []
    stage.step()
    assert model.log == ["plan a"]
    stage.abort("b")
    assert steps(stage) == [("a", 1, 0, True)]
    assert model.log == ["plan a"]


def test_who_runs_dry_first_has_the_next_turn_and_batches_the_last() -> None:
    model = Parts()
    stage = build_stage(model)
    stage.add("batch", saying("batch", 1), batch=True)
    stage.add("later", saying("later", 1), batch=False, playout_deadline_s=105.0)
    stage.add("new", saying("new", 2), batch=False)
    order = [request_id for request_id, *_ in steps(stage)]
    # The new one has half a second after each part, so it is first until it ends.
    assert order == ["new", "new", "new", "later", "later", "batch", "batch"]


def test_a_first_part_waits_for_those_who_are_about_to_run_dry() -> None:
    """Each part takes 0.15 s here, so a first part before the next one of a listener with 0.25 s
    left would come too late for it."""
    model, now = Parts(), [100.0]

    def clock() -> float:
        return now[0]

    def synthesize(inputs: Any) -> Iterator[Pcm]:
        for part in Parts.synthesize(model, inputs):
            now[0] += 0.15
            yield part

    model.synthesize = synthesize  # type: ignore[method-assign]
    stage = build_stage(model, clock=clock)
    stage.add("heard", saying("heard", 4), batch=False)
    assert [stage.step().chunks[0].request_id for _ in range(2)] == ["heard", "heard"]
    now[0] += 0.6  # it has a second of sound, less these and the second part's 0.15
    stage.add("new", saying("new", 1), batch=False)
    order = [stage.step().chunks[0].request_id for _ in range(2)]
    assert order == ["heard", "new"]


def test_a_listener_who_does_not_read_is_not_spoken_to_further() -> None:
    model = Parts()
    stage = build_stage(model, credit_s=1.0)
    stage.add("a", saying("a", 5), batch=False)
    assert len(steps(stage)) == 2, "a second of sound"
    assert not stage.has_work()
    stage.credit("a", 500)
    assert len(steps(stage)) == 1
    stage.credit("nobody", 500)


def test_an_abort_ends_the_generator_and_frees_the_place() -> None:
    model = Parts()
    stage = build_stage(model, slots=1)
    stage.add("a", saying("a", 5), batch=False)
    stage.step()
    with pytest.raises(Overloaded):
        stage.add("b", saying("b", 1), batch=False)
    stage.abort("a")
    stage.abort("a")
    assert model.log == ["a0", "a ended"]
    stage.add("b", saying("b", 1), batch=False)
    assert steps(stage)[-1] == ("b", 1, 0, True)


def test_a_fault_ends_its_own_request_only() -> None:
    model = Parts()
    stage = build_stage(model)
    stage.add("bad", saying("bad", 3), batch=False)
    stage.add("good", saying("good", 2), batch=False)
    made = steps(stage)
    assert ("bad", -1, 0, True) in made
    assert [step for step in made if step[0] == "good"][-1] == ("good", 2, 0, True)


def test_parts_of_two_requests_are_made_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=LIMIT_S)
    model = SlowParts()

    def synthesize(inputs: Any) -> Iterator[Pcm]:
        both.wait()  # broken, and the request fails, unless the other one comes too
        yield PART

    model.synthesize = synthesize  # type: ignore[method-assign]
    stage = build_stage(model)
    for name in ("a", "b"):
        stage.add(name, saying(name, 1), batch=False)
    made = steps(stage)
    sound = [(name, 0, 500, False) for name in ("a", "b")]
    assert sorted(made) == sorted([*sound, ("a", 1, 0, True), ("b", 1, 0, True)])
    stage.close()


def test_a_part_that_is_alone_needs_no_thread() -> None:
    names = set()
    model = SlowParts()

    def synthesize(inputs: Any) -> Iterator[Pcm]:
        names.add(threading.current_thread().name)
        yield PART

    model.synthesize = synthesize  # type: ignore[method-assign]
    stage = build_stage(model)
    stage.add("a", saying("a", 1), batch=False)
    assert len(steps(stage)) == 2
    assert names == {threading.current_thread().name}
    stage.close()


def test_a_model_that_is_not_concurrent_makes_one_part_in_a_step() -> None:
    model = Parts()
    stage = build_stage(model)
    for name in ("a", "b"):
        stage.add(name, saying(name, 1), batch=False)
    stage.step()
    assert model.log == ["a0"]


def test_a_part_that_takes_long_holds_back_no_other_request() -> None:
    model = SlowParts()
    stage = build_stage(model)
    stage.add("slow", saying("slow", 1), batch=False)
    stage.add("quick", saying("quick", 2), batch=False)
    made = [stage.step() for _ in range(3)]
    assert [chunk.request_id for one in made for chunk in one.chunks] == ["quick"] * 3
    assert stage.has_work(), "the slow part is still being made"
    model.go.set()
    assert steps(stage) == [("slow", 0, 500, False), ("slow", 1, 0, True)]
    assert [line for line in model.log if "slow" in line] == ["slow0", "slow ended"]
    stage.close()


def test_nothing_is_made_beside_a_part_that_would_then_be_late() -> None:
    model, now, beside = SlowParts(), [100.0], threading.Event()

    def synthesize(inputs: Any) -> Iterator[Pcm]:
        for part in Parts.synthesize(model, inputs):
            now[0] += 0.15
            if inputs[0] == "new":
                beside.set()
            elif inputs[0] == "heard":
                assert not beside.wait(0.3)
            yield part

    model.synthesize = synthesize  # type: ignore[method-assign]
    stage = build_stage(model, clock=lambda: now[0])
    stage.add("before", saying("before", 4), batch=False)
    steps(stage)
    stage.add("heard", saying("heard", 1), batch=False, playout_deadline_s=now[0] + 0.3)
    stage.add("new", saying("new", 1), batch=False)
    assert [chunk.request_id for chunk in stage.step().chunks] == ["heard"]
    assert {request_id for request_id, *_ in steps(stage)} == {"heard", "new"}
    stage.close()


def test_an_abort_waits_for_the_part_that_is_being_made() -> None:
    model = SlowParts()
    stage = build_stage(model)
    stage.add("slow", saying("slow", 3), batch=False)
    stage.add("quick", saying("quick", 1), batch=False)
    stage.step()
    assert model.begun.wait(LIMIT_S)
    stage.abort("slow")
    assert "slow ended" not in model.log
    assert stage.get_counts() == {"requests": 2}
    model.go.set()
    assert {request_id for request_id, *_ in steps(stage)} == {"quick"}
    assert model.log.count("slow ended") == 1
    assert "slow1" not in model.log
    assert stage.get_counts() == {"requests": 0}
    stage.close()


def test_a_fault_beside_another_request_ends_its_own_only() -> None:
    model = SlowParts()
    stage = build_stage(model)
    stage.add("bad", saying("bad", 3), batch=False)
    stage.add("good", saying("good", 3), batch=False)
    made = steps(stage)
    assert [step for step in made if step[0] == "bad"] == [
        ("bad", 0, 500, False),
        ("bad", -1, 0, True),
    ]
    assert [step[1] for step in made if step[0] == "good"] == [0, 1, 2, 3]
    stage.close()


def test_closing_ends_what_is_being_made() -> None:
    model = SlowParts()
    stage = build_stage(model)
    stage.add("slow", saying("slow", 2), batch=False)
    stage.add("quick", saying("quick", 3), batch=False)
    stage.step()
    model.go.set()
    stage.close()
    assert {"slow ended", "quick ended"} <= set(model.log)
    assert stage.get_counts() == {"requests": 0}


@pytest.mark.parametrize(
    "part",
    [
        Rows(np.zeros((3, 1), np.float32)),
        Pcm(np.zeros((3, 2), np.float32)),
        Pcm(np.zeros(3, np.float32)),
        Pcm(np.zeros((3, 1), np.float64)),
    ],
    ids=["no sound", "channels", "shape", "dtype"],
)
def test_a_part_of_another_form_is_a_fault(part: Any) -> None:
    model = Parts()
    model.synthesize = lambda inputs: iter([part])  # type: ignore[method-assign]
    stage = build_stage(model)
    stage.add("a", saying("a", 1), batch=False)
    ((_, error),) = stage.step().failures
    assert isinstance(error, RequestFailed)
    assert "the model made" in str(error)


def test_a_request_needs_an_input_and_an_id_of_its_own() -> None:
    stage = build_stage(Parts())
    stage.add("a", saying("a", 1), batch=False)
    for payload in (("a", 1), None):
        with pytest.raises(ProtocolViolation):
            stage.add("a" if payload else "b", payload, batch=False)  # type: ignore[arg-type]


def test_a_stage_that_makes_sound_makes_nothing_else() -> None:
    def pipeline(outputs: dict[str, Any], *edges: EdgeSpec) -> PipelineSpec:
        stage = StageSpec("voice", StageKind.FEED_FORWARD, "a:b", outputs=outputs)
        return PipelineSpec((stage,), edges)

    to_client = EdgeSpec("voice.sound", CLIENT)
    assert pipeline({"sound": Pcm}, to_client).makes_sound
    with pytest.raises(ConfigError, match="that is its only port"):
        pipeline({"sound": Pcm, "more": Rows}, to_client, EdgeSpec("voice.more", CLIENT))
