"""Answers are those of the publisher's code, alone and beside other answers and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from cantata.contract.data.chat import ChatRequest, Message, Role, TextPart
from cantata.contract.data.errors import InvalidRequest
from cantata_models.bagel.plugin import PIPELINE
from cantata_models.bagel.random_checkpoint import write_checkpoint
from cantata_models.bagel.tests.checks import check_answer, goldens
from cantata_models.bagel.tests.drawing import Studio
from cantata_models.bagel.tests.parity.conversations import CONVERSATIONS, Conversation
from cantata_models.bagel.tests.parity.scenarios import SEED, scenario_named
from threads import threads


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with threads(1):
        yield Studio(write_checkpoint(tmp_path_factory.mktemp("checkpoint"), SEED))


def test_answers_are_the_references_alone_and_in_company(studio: Studio) -> None:
    requests = [conversation.request() for conversation in CONVERSATIONS]
    together = studio.finish([studio.begin_answer(request) for request in requests])
    for conversation, request, beside in zip(CONVERSATIONS, requests, together, strict=True):
        check_answer(studio, conversation)
        np.testing.assert_array_equal(studio.finish([studio.begin_answer(request)])[0], beside)


def test_answers_and_pictures_share_forwards_and_do_not_change_each_other(studio: Studio) -> None:
    """Bit for bit, whichever is the longer."""
    requests = [scenario_named(name).request() for name in ("wide", "edit", "thought")]
    pictures = [studio.begin(studio.inputs(request)) for request in requests]
    answers = [studio.begin_answer(conversation.request()) for conversation in CONVERSATIONS]
    made = studio.finish([*pictures, *answers])
    latents, tokens = made[: len(pictures)], made[len(pictures) :]
    for request, beside in zip(requests, latents, strict=True):
        np.testing.assert_array_equal(beside, studio.draw(request).latents[-1])
    for conversation, beside in zip(CONVERSATIONS, tokens, strict=True):
        np.testing.assert_array_equal(beside, goldens()[f"{conversation.name}/tokens"])


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda one: one.name)
def test_an_answer_takes_the_steps_that_were_planned(
    studio: Studio, conversation: Conversation
) -> None:
    """At most; and no stage that is for pictures alone takes part."""
    planned = studio.answers.build("a", conversation.request())
    assert planned.steps is not None
    job = studio.begin_answer(conversation.request())
    assert studio.denoiser.steps(job) == planned.steps.reading + planned.steps.writing
    inputs = planned.request.inputs
    part = PIPELINE.taking_part(inputs, planned.request.without)
    assert {stage.name for stage in part} == inputs.keys()


@pytest.mark.parametrize(
    ("field", "options"),
    [("top_p", {"top_p": 0.9}), ("presence_penalty", {"presence_penalty": 1.0})],
)
def test_options_that_the_model_has_not_are_refused(
    studio: Studio, field: str, options: dict[str, float]
) -> None:
    request = replace(CONVERSATIONS[2].request(), **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest) as caught:
        studio.answers.build("a", request)
    assert caught.value.param == field


def test_a_conversation_must_leave_room_for_an_answer(studio: Studio) -> None:
    request = ChatRequest((Message(Role.USER, (TextPart("a b " * 20_000),)),))
    with pytest.raises(InvalidRequest, match="positions"):
        studio.answers.build("a", request)
