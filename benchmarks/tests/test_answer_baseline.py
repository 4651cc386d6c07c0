"""Answers without a server: what the loop counts, and what the tables make of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from counting_stages import PIPELINE, CountingDecoder, CountingTalker

from cantata.contract.data.chat import ChatRequest
from cantata.contract.data.request import PipelineRequest, Voice
from cantata.contract.model.conversation import PlannedAnswer
from cantata_bench.answer_baseline import (
    BareAnswers,
    Rate,
    StageSteps,
    answer_all,
    get_steps,
    measure_rate,
    ratio_rows,
)
from cantata_bench.answers import ROUNDS, Answered
from cantata_bench.baseline import BarePipeline, StepTimes


@dataclass
class AnswerBuilder:
    voices: tuple[Voice, ...] = (Voice("ann", "Ann"), Voice("bob", "Bob"))
    asked: list[ChatRequest] = field(default_factory=list)

    def build(self, request_id: str, request: ChatRequest) -> PlannedAnswer:
        self.asked.append(request)
        return PlannedAnswer(PipelineRequest(request_id, {"first": {"frames": 6}}), 3)  # type: ignore[dict-item]


def test_the_bare_loop_answers_as_many_at_a_time_as_it_is_told() -> None:
    talker, decoder, builder = CountingTalker(), CountingDecoder(), AnswerBuilder()
    bare = BarePipeline(PIPELINE, {"first": talker, "last": decoder})  # type: ignore[dict-item]
    found = answer_all(bare, builder, (1, 4), tokens=48)  # type: ignore[arg-type]
    assert talker.most == 4
    assert set(found.rates) == {1, 4}
    assert all(one.throughput_x > 0 and one.cpu_x > 0 for one in found.rates.values())
    assert [(one.stage, one.requests) for one in found.steps] == [
        ("first", 1),
        ("last", 1),
        ("first", 4),
        ("last", 4),
    ]
    # Six frames of each request, the first of them with the prompt, in the rounds that count.
    assert {one.steps for one in found.steps} == {5 * ROUNDS}
    assert len(builder.asked) == (1 + 4) * (1 + ROUNDS)
    assert {(one.voice, one.max_tokens) for one in builder.asked} == {("ann", 48)}
    assert {one.seed for one in builder.asked[-4:]} == {0, 1, 2, 3}, "as those that are served"
    assert not any({**talker.get_counts(), **decoder.get_counts()}.values())


def test_steps_that_serve_fewer_requests_are_left_out() -> None:
    steps = [
        StepTimes("a", 2, 2, 0.5, begins=True),
        StepTimes("a", 2, 2, 0.1, begins=False),
        StepTimes("a", 2, 2, 0.3, begins=False),
        StepTimes("a", 1, 1, 9.0, begins=False),
        StepTimes("b", 2, 2, 0.7, begins=False),
    ]
    assert get_steps(steps, 2) == [
        StageSteps("a", 2, 0.5, pytest.approx(0.2), 2),  # type: ignore[arg-type]
        StageSteps("b", 2, None, 0.7, 1),
    ]


ALONE = Answered(0.1, 0.5, 0.2, 2.0, pieces=5, audio_s=6.0)
LATE = Answered(0.3, 0.7, 0.9, 4.0, pieces=3, audio_s=6.0)


def test_a_ratio_is_of_the_same_number_of_requests() -> None:
    bare = BareAnswers({1: Rate(2.0, 0.5), 2: Rate(4.0, 0.25)}, ())
    rows = list(ratio_rows(bare, {1: Rate(3.0, 1.0), 2: Rate(3.0, 0.5, refused=1)}))
    assert rows == [
        ("1", "0", "2.00", "3.00", "1.50", "0.50", "1.00", "2.00"),
        ("2", "1", "4.00", "3.00", "0.75", "0.25", "0.50", "2.00"),
    ]


def test_rounds_have_one_rate() -> None:
    assert measure_rate([[ALONE]], 3.0) == Rate(3.0, 0.5)
    assert measure_rate([[ALONE, LATE], [ALONE, None]], 9.0) == Rate(3.0, 0.5, refused=1)
