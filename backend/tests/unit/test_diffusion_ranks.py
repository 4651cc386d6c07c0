"""Several ranks of one denoiser: the same jobs everywhere, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.data.errors import ConfigError, RequestFailed, StageDied
from cantata.contract.model.denoiser import DenoiserOptions, Parallel, Ranks
from cantata.stages.common.ranks import LOST, RankGroup
from cantata.stages.diffusion.ranks import main
from cantata.stages.diffusion.ranks.denoiser import RankedDenoiser, SharedJob
from cantata.stages.diffusion.ranks.group import RankMessage
from cantata.stages.diffusion.ranks.load import load_ranked
from process_group import leave_process_group
from tiny_painter.inputs import TinyCanvas
from tiny_painter.stages import TinyDenoiser

ARRIVED: Mapping[str, Payload] = {"condition": Rows(np.ones((2, 3), np.float32))}


class Other:
    """Another rank in this process: obeys as its own process would."""

    def __init__(self) -> None:
        self.model = TinyDenoiser()
        self.jobs: dict[int, Any] = {}

    def send(self, message: RankMessage) -> None:
        main._handle(self.model, self.jobs, message)

    def end(self) -> None:
        """Its own process would be gone."""


def begin(model: RankedDenoiser, fault: str = "", seed: int = 1) -> SharedJob:
    return model.begin(TinyCanvas(16, 16, seed, steps=3, fault=fault), ARRIVED)


@pytest.fixture
def others() -> list[Other]:
    return [Other(), Other()]


@pytest.fixture
def model(others: Sequence[Any]) -> Iterator[RankedDenoiser]:
    model = RankedDenoiser(TinyDenoiser(), RankGroup(others))
    yield model
    model.close()


def test_every_rank_makes_the_same_steps(model: RankedDenoiser, others: list[Other]) -> None:
    jobs = [begin(model, seed=seed) for seed in (1, 2)]
    model.advance(jobs)
    model.advance(jobs[1:])
    for other in others:
        assert other.model.forwards == [[1, 2], [2]]
        for job, theirs in zip(jobs, other.jobs.values(), strict=True):
            np.testing.assert_array_equal(theirs.latents, model.latents(job))


def test_a_job_that_is_dropped_here_is_dropped_everywhere_though_nothing_is_asked(
    model: RankedDenoiser, others: list[Other]
) -> None:
    kept, dropped = begin(model), begin(model)
    assert [list(other.jobs) for other in others] == [[kept.number, dropped.number]] * 2
    del dropped
    model.close()
    assert [list(other.jobs) for other in others] == [[kept.number]] * 2


def test_a_job_may_be_dropped_in_the_middle_of_a_message(others: list[Other]) -> None:
    """Its finalizer runs wherever the last reference goes."""

    class Dropping(Other):
        def send(self, message: RankMessage) -> None:
            dropped.clear()
            super().send(message)

    model = RankedDenoiser(TinyDenoiser(), RankGroup([Dropping(), *others]))  # type: ignore[list-item]
    dropped: list[SharedJob] = []
    dropped = [begin(model)]
    kept = begin(model)
    model.close()
    assert [list(other.jobs) for other in others] == [[kept.number]] * 2


def test_what_all_ranks_refuse_is_an_error_of_the_request(
    model: RankedDenoiser, others: list[Other]
) -> None:
    with pytest.raises(RequestFailed, match="cannot be drawn"):
        begin(model, fault="UNWILLING")
    job = begin(model)
    model.advance([job])
    assert [list(other.jobs) for other in others] == [[job.number]] * 2


def test_a_fault_of_one_rank_ends_the_stage() -> None:
    """The tiny denoiser raises something that no rank has agreed upon."""
    code = (
        "from test_diffusion_ranks import *\n"
        "model = RankedDenoiser(TinyDenoiser(), RankGroup([]))\n"
        "model.advance([begin(model, fault='CRASH')])\n"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == LOST, made.stderr
    assert "overflow" in made.stderr


def load_badly(checkpoint: object, options: DenoiserOptions) -> TinyDenoiser:
    """A factory that only rank 0 survives."""
    assert options.ranks is not None
    if options.ranks.rank == 0:
        return TinyDenoiser()
    match str(checkpoint):
        case "refused":
            raise ConfigError("no weights for this rank")
    os._exit(3)


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize(("checkpoint", "error"), [("refused", ConfigError), ("ended", StageDied)])
def test_a_rank_that_cannot_load_is_an_error_and_none_is_left(
    checkpoint: Any, error: type[Exception]
) -> None:
    import psutil
    from torch import distributed

    leave_process_group()
    before = set(psutil.Process().children())
    options = DenoiserOptions("cpu", "float32", ranks=Ranks(Parallel.BRANCHES, 2))
    try:
        with pytest.raises(error, match="rank"):
            load_ranked(f"{__name__}:load_badly", checkpoint, options)
    finally:
        distributed.destroy_process_group()
    assert set(psutil.Process().children()) <= before
