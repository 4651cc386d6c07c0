"""Thoughts as their readers see them: in words, while they are thought, without marks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from cantata.config import load_deployment
from cantata.contract.data.chunks import Image
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.image_service import DrawingEvent, Thought
from cantata.engine.image_model import PipelineImageModel
from cantata.engine.plan import ServicePlan
from cantata.engine.service import create_service
from cantata.plugins import locate
from cantata_models.bagel.plugin import PLUGIN
from cantata_models.bagel.prompts import Texts
from cantata_models.bagel.random_checkpoint.write import write_checkpoint
from cantata_models.bagel.tests.drawing import Studio
from cantata_models.bagel.tests.parity.scenarios import SEED, scenario_named
from cantata_models.bagel.thought_text import ThoughtReader
from threads import threads


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"), SEED)


@pytest.fixture(scope="module")
def texts(checkpoint: Path) -> Texts:
    return Texts(checkpoint)


def read(texts: Texts, *pieces: str) -> tuple[str, list[str]]:
    """All of it, and what left with each piece."""
    reader = ThoughtReader(texts.tokenizer)
    left = [reader.read(np.array(texts.tokens(piece)[1:-1], np.int32)) for piece in pieces]
    return "".join(left) + reader.end(), left


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<think>\nA red cube.\nOn a table.\n</think>\n", "A red cube.\nOn a table."),
        ("  <think> a</think>", "a"),
        ("no marks at all", "no marks at all"),
        ("a < b, </thin", "a < b, </thin"),
        ("<think>a</think> and b</think>", "a and b"),
        ("<think></think>", ""),
        ("  ", ""),
        ("<thi", "<thi"),
    ],
)
def test_marks_are_not_shown(texts: Texts, written: str, shown: str) -> None:
    assert read(texts, written)[0] == shown


@given(st.lists(st.sampled_from(["<think>", "</think>", " ", "<", "/think>", "a", "\n", "b c"])))
def test_a_thought_is_the_same_however_it_is_cut(texts: Texts, pieces: list[str]) -> None:
    assert read(texts, *pieces)[0] == read(texts, "".join(pieces))[0]


def test_words_leave_while_they_are_thought(texts: Texts) -> None:
    assert read(texts, "<think>", "A red", " cube", ".", "\n</thi", "nk>")[1] == [
        *("", "A red", " cube", ".", "", "")
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(checkpoint: Path) -> AsyncIterator[PipelineImageModel]:
    located = locate(f"{PLUGIN.name}={checkpoint}")
    deployment = load_deployment(PLUGIN.deployment, located.pipeline)
    service = create_service(ServicePlan(located, located.pipeline, deployment))
    await service.start()
    yield service.image_models[PLUGIN.name]
    await service.stop()


async def events_of(model: PipelineImageModel, request: ImageRequest) -> list[DrawingEvent]:
    async with model.draw(request) as drawing:
        return [event async for event in drawing]


@pytest.mark.asyncio(loop_scope="module")
async def test_the_thought_that_is_served_is_the_one_that_is_drawn(
    served: PipelineImageModel, checkpoint: Path
) -> None:
    """Through stage processes: its words before the picture, and the same picture."""
    request = scenario_named("thought").request()
    with threads(1):
        studio = Studio(checkpoint)
        drawn = studio.draw(request)
    assert drawn.thought is not None
    *before, last = await events_of(served, request)
    assert isinstance(last, Image)
    np.testing.assert_array_equal(last.pixels, drawn.pixels)
    thoughts = [event for event in before if isinstance(event, Thought)]
    reader = studio.builder.reader()
    # Between marks of begin and end.
    expected = reader.read(np.array(drawn.thought[1:-1], np.int32)) + reader.end()
    assert "".join(thought.text for thought in thoughts) == expected
    assert sum(thought.tokens for thought in thoughts) > 5


@pytest.mark.asyncio(loop_scope="module")
async def test_a_picture_that_is_not_planned_has_no_words(served: PipelineImageModel) -> None:
    events = await events_of(served, scenario_named("square").request())
    assert isinstance(events[-1], Image)
    assert not [event for event in events if isinstance(event, Thought)]
