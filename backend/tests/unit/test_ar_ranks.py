"""Several ranks of one AR stage: the same calls everywhere, in the same order."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.process.stage import StepResult
from cantata.stages.ar.ranks.main import obey
from cantata.stages.ar.ranks.share import RankCall
from cantata.stages.ar.ranks.stage import RankedStage
from cantata.stages.common.ranks import LOST, RankGroup
from stage_chunks import codes_chunk
from stage_loops import EchoInput, EchoStage


class NoisyStage(EchoStage):
    """Raises what no rank has agreed upon."""

    def step(self) -> StepResult:
        raise OverflowError("of this rank alone")


class OtherRank:
    """In this process: obeys as its own process would."""

    def __init__(self) -> None:
        self.stage = EchoStage()
        self.obeyed: list[str] = []
        self.ended = False

    def send(self, call: RankCall) -> None:
        self.obeyed.append(call.method)
        obey(self.stage, call)

    def end(self) -> None:
        self.ended = True


@pytest.fixture
def others() -> list[OtherRank]:
    return [OtherRank(), OtherRank()]


@pytest.fixture
def stage(others: list[Any]) -> RankedStage:
    return RankedStage(EchoStage(), RankGroup(others))


def test_every_rank_makes_every_call_that_changes_a_stage(
    stage: RankedStage, others: list[OtherRank]
) -> None:
    stage.add("a", None, batch=False)
    stage.add("b", None, batch=True)
    stage.receive([codes_chunk("a", 0, np.array([[3]], np.int32), False)])
    stage.extend("a", EchoInput(codes=(4,), index=1), final=True)
    assert stage.has_work()
    made = [stage.step().chunks[0], stage.step().chunks[0]]
    assert [chunk.payload.samples[0, 0] for chunk in made] == [3, 4]  # type: ignore[union-attr]
    stage.abort("b")
    assert stage.get_counts() == {"requests": 0}
    for other in others:
        assert other.obeyed == ["add", "add", "receive", "extend", "step", "step", "abort"]
        assert other.stage.get_counts() == stage.get_counts()
        assert not other.stage.has_work()


def test_what_all_ranks_refuse_is_an_error_of_the_request(
    stage: RankedStage, others: list[OtherRank]
) -> None:
    with pytest.raises(InvalidRequest, match="refused"):
        stage.add("a", EchoInput(refuse=True), batch=False)
    assert [other.obeyed for other in others] == [["add"], ["add"]]
    assert not any(other.stage.requests for other in others)


def test_the_others_end_with_it(stage: RankedStage, others: list[OtherRank]) -> None:
    stage.close()
    assert all(other.ended for other in others)


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("RankedStage(NoisyStage(), RankGroup([])).step()", "of this rank alone"),
        ("RankedStage(EchoStage(), RankGroup([Gone()])).step()", "another rank has ended"),
    ],
)
def test_ranks_that_no_longer_hold_the_same_end_the_stage(made: str, said: str) -> None:
    code = (
        "import logging; logging.basicConfig()\n"
        "from test_ar_ranks import *\n"
        "class Gone:\n"
        "    def send(self, call): raise BrokenPipeError\n"
        f"{made}\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == LOST, ended.stderr
    assert said in ended.stderr
