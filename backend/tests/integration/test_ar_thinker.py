"""A thinker: positions on three axes, wide rows, memory that does not suffice for all, and the
prefixes that turns of a conversation share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from cantata.config import ArDeployment
from cantata.contract.process.stage import Stage
from cantata.stages.ar import build_stage
from tiny_talker.checkpoint import CODEBOOK_SIZE, HIDDEN, save_tiny_checkpoint
from tiny_talker.driving import THINKER, Frames, Listener, listen, listen_preempted
from tiny_talker.inputs import TinyConversation

pytestmark = pytest.mark.vllm

ROOMY = ArDeployment(slots=8, max_model_len=128, max_num_batched_tokens=16)
RANDOM = np.random.default_rng(0)


def picture(text: int, height: int, width: int) -> list[list[int]]:
    """Positions of some text, a picture of this grid, and as much text again: [3, L]."""
    grid = np.indices((1, height, width)).reshape(3, -1) + text
    after = np.arange(text) + text + max(height, width)
    before = np.arange(text)
    ones = np.ones((3, 1), dtype=int)
    return np.concatenate([ones * before, grid, ones * after], axis=1).tolist()  # type: ignore[no-any-return]


def conversation(number: int) -> TinyConversation:
    """Another length and grid for each."""
    positions = picture(2 + number, 2 + number % 3, 3)
    length = len(positions[0])
    added = {2 + number + place: RANDOM.normal(size=HIDDEN).tolist() for place in range(3)}
    tokens = RANDOM.integers(0, CODEBOOK_SIZE, length).tolist()
    return TinyConversation(tokens, positions=positions, added=added)


REQUESTS = {f"r{number}": conversation(number) for number in range(8)}
TEXT = TinyConversation(RANDOM.integers(0, CODEBOOK_SIZE, 20).tolist())


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="module")
def stage(checkpoint: Path) -> Iterator[Stage]:
    stage = build_stage(THINKER, checkpoint, ROOMY)
    yield stage
    assert set(stage.get_counts().values()) == {0}
    stage.close()


@pytest.fixture(scope="module")
def alone(stage: Stage) -> dict[str, Listener]:
    return {name: listen(stage, {name: asked}) for name, asked in REQUESTS.items()}


def rows(stage: Stage, asked: TinyConversation) -> Frames:
    return listen(stage, {"r": asked}).rows("r")


def test_alike_alone_in_company_and_after_preemption(
    stage: Stage, alone: dict[str, Listener]
) -> None:
    for listener in (listen(stage, REQUESTS, every=2), listen_preempted(stage, REQUESTS)):
        for name, expected in alone.items():
            np.testing.assert_array_equal(listener.frames(name), expected.frames(name))
            np.testing.assert_array_equal(listener.rows(name), expected.rows(name))


def test_positions_that_count_are_those_of_text(stage: Stage) -> None:
    counted = replace(TEXT, positions=[list(range(20))] * 3)
    np.testing.assert_array_equal(rows(stage, counted), rows(stage, TEXT))


def test_each_axis_matters_and_only_distances_do(stage: Stage) -> None:
    """Rotations of queries and keys depend on differences: also between prompt and answer."""
    asked = REQUESTS["r4"]
    usual, positions = rows(stage, asked), np.array(asked.positions)
    moved = replace(asked, positions=(positions + 17).tolist())
    np.testing.assert_allclose(rows(stage, moved), usual, atol=2e-4)
    for axis in range(3):
        shifted = positions.copy()
        shifted[axis, 7:10] += 6
        other = rows(stage, replace(asked, positions=shifted.tolist()))
        np.testing.assert_array_equal(other[:7], usual[:7])
        assert np.abs(other[10:] - usual[10:]).max() > 1e-2, axis


def test_an_answer_counts_on_from_the_largest_position(stage: Stage) -> None:
    """Its first token stands where a prompt that ends with it has it."""
    asked = replace(REQUESTS["r4"], max_frames=4, min_frames=4)
    made = listen(stage, {"r": asked})
    first = int(made.frames("r")[0, 0])
    positions = np.array(asked.positions)
    longer = np.concatenate([positions, np.full((3, 1), positions.max() + 1)], axis=1)
    prompt = replace(asked, tokens=[*asked.tokens, first], positions=longer.tolist())
    count = len(prompt.tokens)
    np.testing.assert_allclose(rows(stage, prompt)[:count], made.rows("r")[:count], atol=2e-4)


def test_other_columns_reach_the_layers(stage: Stage) -> None:
    place = 9
    added = replace(TEXT, added={place: [1.0] * HIDDEN})
    usual, other = rows(stage, TEXT), rows(stage, added)
    np.testing.assert_array_equal(other[:place], usual[:place])
    assert np.abs(other[place] - usual[place]).max() > 1e-2
    nothing = replace(TEXT, added={place: [0.0] * HIDDEN})
    np.testing.assert_array_equal(rows(stage, nothing), usual)


def test_with_memory_for_few_all_are_answered(checkpoint: Path, alone: dict[str, Listener]) -> None:
    deployment = ROOMY.model_copy(update={"kv_positions": 96, "max_model_len": 64})
    small = build_stage(THINKER, checkpoint, deployment)
    scheduler = small._engine._core.scheduler  # type: ignore[attr-defined]
    preempt = scheduler._preempt_request
    try:
        with patch.object(scheduler, "_preempt_request", wraps=preempt) as preempted:
            listener = listen(small, REQUESTS)
        assert preempted.called
        for name, expected in alone.items():
            np.testing.assert_array_equal(listener.frames(name), expected.frames(name))
            np.testing.assert_array_equal(listener.rows(name), expected.rows(name))
        assert set(small.get_counts().values()) == {0}
    finally:
        small.close()


def test_a_second_turn_reads_the_first_from_memory(checkpoint: Path) -> None:
    """Prompt and answer of the first turn begin the second's prompt."""
    deployment = ROOMY.model_copy(update={"prefix_caching": True})
    caching = build_stage(THINKER, checkpoint, deployment)
    try:
        first = replace(
            TEXT, tokens=[*TEXT.tokens] * 2, max_frames=30, min_frames=30, exports_rows=False
        )
        answer = listen(caching, {"first": first}).frames("first")[:, 0].tolist()
        second = replace(first, tokens=[*first.tokens, *answer, 3, 4], max_frames=4, min_frames=4)
        steps = {}
        for name, exports in (("exporting", True), ("cached", False)):
            caching.add(name, replace(second, exports_rows=exports), batch=False)
            listener = Listener()
            steps[name] = 0
            while name not in listener.chunks:
                listener.step(caching)
                steps[name] += 1
            while caching.has_work():
                listener.step(caching)
            steps[f"{name} tokens"] = listener.frames(name).tolist()
            assert bool(listener.row_chunks) is exports
        # 72 positions in steps of 16; two blocks of 32 are known.
        assert (steps["exporting"], steps["cached"]) == (5, 1)
        assert steps["exporting tokens"] == steps["cached tokens"]
    finally:
        caching.close()
