"""Branches on two ranks: the same latents as of one process, and half the work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from torch import distributed

from cantata.contract.data.errors import ConfigError, RequestFailed
from cantata.contract.model.denoiser import DenoiserOptions, Parallel, Ranks, Skipping, SkipTest
from cantata.stages.diffusion.ranks.denoiser import RankedDenoiser
from cantata.stages.diffusion.ranks.load import load_ranked
from cantata_layers.qwen_image.stages.denoise import load_picture_denoiser
from cantata_layers.qwen_image.transformer.network import VelocityPredictor
from cantata_models.qwen_image.random_checkpoint.shapes import VARIANTS
from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint
from cantata_models.qwen_image.tests.jobs import Asked, drawn
from process_group import leave_process_group
from threads import threads

pytestmark = pytest.mark.integration

FACTORY = "cantata_layers.qwen_image.stages.denoise:load_picture_denoiser"
SKIPPING = Skipping(SkipTest.RESIDUAL, 1.1, 1, first_blocks=1, order=1)
COMPANY = (
    Asked(1, steps=6),
    Asked(2, grid=(3, 3), steps=4, guidance=1.0, words=2),
    Asked(3, grid=(5, 4), steps=5, words=17),
    Asked(4, grid=(2, 7), steps=6, guidance=1.0),
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        folder = tmp_path_factory.mktemp("checkpoint")
        yield write_checkpoint(folder, VARIANTS["image"], seed=1)


@pytest.fixture(scope="module")
def ranked(checkpoint: Path) -> Iterator[RankedDenoiser]:
    """Shortened steps have a memory for each branch, which must stay on the branch's rank."""
    leave_process_group()
    ranks = Ranks(Parallel.BRANCHES, 2)
    options = DenoiserOptions("cpu", "float32", SKIPPING, ranks)
    model = load_ranked(FACTORY, checkpoint, options)
    yield model
    model.close()
    distributed.destroy_process_group()


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of each forward of this process."""
    counted: list[int] = []
    inner = VelocityPredictor.velocities

    def counting(self: VelocityPredictor, rows: list[object], *others: object) -> object:
        counted.append(len(rows))
        return inner(self, rows, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(VelocityPredictor, "velocities", counting)
    return counted


def test_two_ranks_draw_what_one_process_draws(
    checkpoint: Path, ranked: RankedDenoiser, rows: list[int]
) -> None:
    """Bit for bit, in float32 on CPUs of one kind."""
    alone = load_picture_denoiser(checkpoint, DenoiserOptions("cpu", "float32", SKIPPING))
    expected = drawn(alone, COMPANY)
    in_one = sum(rows)
    rows.clear()
    found = drawn(ranked, COMPANY)
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, right)
    assert in_one == 2 * 6 + 4 + 2 * 5 + 6
    # The pictures without guidance are on a rank each; the second has two steps more.
    assert abs(sum(rows) - in_one / 2) <= 1


def test_a_rank_that_fails_fails_the_step_and_no_more(
    ranked: RankedDenoiser, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = COMPANY[0]
    (expected,) = drawn(ranked, [asked])
    job = ranked.begin(asked.inputs(), asked.arrived())
    for step in range(asked.steps):
        with monkeypatch.context() as patch:
            patch.setattr(VelocityPredictor, "velocities", failing)
            with pytest.raises(RequestFailed, match="rank 0 could not"):
                ranked.advance([job])
        assert ranked.advance([job]) == [None]
        np.testing.assert_array_equal(ranked.latents(job), expected[step])


def failing(*_: object) -> None:
    raise MemoryError


@pytest.mark.parametrize("kind", [Parallel.ULYSSES, Parallel.RING, Parallel.TENSOR])
def test_the_packed_executor_shares_branches_alone(checkpoint: Path, kind: Parallel) -> None:
    options = DenoiserOptions("cpu", "float32", ranks=Ranks(kind, 2))
    with pytest.raises(ConfigError, match=f"'{kind.value}' needs `hooked`"):
        load_picture_denoiser(checkpoint, options)
