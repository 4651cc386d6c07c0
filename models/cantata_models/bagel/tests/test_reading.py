"""What stands before a picture or an answer is read piece by piece, between the steps of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from cantata.config import DiffusionDeployment
from cantata.contract.data.chat import Role
from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.pictures import ImageRequest, Turn
from cantata.stages.diffusion import DiffusionStage
from cantata_models.bagel import config, context_segments, prompt
from cantata_models.bagel.language_model import Span
from cantata_models.bagel.plugin import DENOISE
from cantata_models.bagel.random_checkpoint import write_checkpoint
from cantata_models.bagel.tests.checks import check_scenario
from cantata_models.bagel.tests.drawing import Studio
from cantata_models.bagel.tests.parity.scenarios import SEED, picture, scenario_named
from threads import threads

MAX_READ = 5
"""Tokens of a piece of text, in these tests."""
LONG = ImageRequest(
    "Now put all of it into one picture, please: " + "this and that, " * 4,
    (picture(64, 64, 1),),
    64,
    64,
    steps=20,
    earlier=(Turn(Role.USER, (picture(80, 60, 2),), "A house, seen from the sea."),),
)
SHORT = ImageRequest("A.", width=64, height=64, steps=2)


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with threads(1):
        yield Studio(write_checkpoint(tmp_path_factory.mktemp("checkpoint"), SEED))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (config, prompt, context_segments):
        monkeypatch.setattr(module, "MAX_READ", MAX_READ)


class Forwards:
    """Counts what the network is asked."""

    def __init__(self, studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spans: list[Sequence[Span]] = []
        """Of each forward."""
        reader = studio.denoiser._reader
        self._run = reader.run
        monkeypatch.setattr(reader, "run", self._counted)

    def _counted(self, spans: Sequence[Span]) -> Any:
        self.spans.append(spans)
        return self._run(spans)


@pytest.mark.parametrize("name", ["conversation", "edit_thought", "wide"])
@pytest.mark.usefixtures("small_pieces")
def test_a_text_that_is_read_in_pieces_is_the_same_text(studio: Studio, name: str) -> None:
    check_scenario(studio, scenario_named(name))


def begin(stage: DiffusionStage, studio: Studio, name: str, request: ImageRequest) -> None:
    inputs: Mapping[str, Any] = studio.inputs(request)
    arrived = studio.encoded(inputs)
    stage.add(name, inputs[DENOISE], batch=False)
    chunks: list[Chunk[Payload]] = [
        Chunk(name, port, 0, payload, final=True) for port, payload in arrived.items()
    ]
    stage.receive(chunks)


@pytest.mark.usefixtures("small_pieces")
def test_a_picture_waits_for_one_piece_of_what_another_has_to_read(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In steps: however much is to be read, each forward reads one piece, and the plan may give the
    next one to somebody else."""
    stage = DiffusionStage(studio.denoiser, DiffusionDeployment())
    forwards = Forwards(studio, monkeypatch)
    begin(stage, studio, "long", LONG)
    stage.step()
    assert not forwards.spans, "to begin is no forward"
    reading = studio.builder.build("a", LONG).steps - 20
    assert reading > 10
    for read in range(1, 4):
        stage.step()
        assert len(forwards.spans) == read
        assert all(span.tokens <= MAX_READ for span in forwards.spans[-1] if span.causal)
    begin(stage, studio, "short", SHORT)
    stage.step()
    assert len(forwards.spans) == 3
    needed = studio.builder.build("a", SHORT).steps
    left = [c for _ in range(needed) for c in stage.step().chunks]
    assert len(forwards.spans) == 3 + needed
    assert [c.request_id for c in left if c.port == "latents"] == ["short"]


def test_pieces_of_the_published_size_are_no_longer_than_a_step() -> None:
    """A picture of 1024 x 1024 has 64 x 64 tokens."""
    assert [len(one.tokens) for one in context_segments.words(range(9000))] == [
        4096,
        4096,
        808,
    ]
    assert prompt.pieces([tuple(range(9000))]) == 3
