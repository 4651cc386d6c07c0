"""Prompts prefilled in parts and shared through the prefix cache give the frames of plain ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cantata.config import ArDeployment
from cantata.contract.data.request import SamplingOptions
from cantata.contract.process.stage import Stage
from cantata.stages.ar import build_stage
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.driving import (
    TALKER,
    listen_preempted,
    speak,
    speak_alone,
    varied_payloads,
)
from tiny_talker.inputs import TinyInput

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

PROMPT = list(range(40)) + list(range(30))
"""Long enough for two KV blocks of 32."""
REQUESTS = {
    **varied_payloads(8),
    **{
        f"shared{seed}": TinyInput(
            text=PROMPT, max_frames=30, sampling=SamplingOptions(seed=seed, temperature=0.9)
        )
        for seed in range(3)
    },
    "other": TinyInput(
        text=PROMPT[::-1], max_frames=30, sampling=SamplingOptions(seed=1, temperature=0.9)
    ),
}


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Stage]]:
    """A plain stage, and one that chunks and caches."""
    folder = tmp_path_factory.mktemp("tiny_talker")
    save_tiny_checkpoint(folder)
    plain = ArDeployment(slots=8, max_model_len=128, max_num_batched_tokens=512)
    chunked = plain.model_copy(update={"max_num_batched_tokens": 16, "prefix_caching": True})
    pair = tuple(build_stage(TALKER, folder, deployment) for deployment in (plain, chunked))
    yield pair  # type: ignore[misc]
    for stage in pair:
        assert set(stage.get_counts().values()) == {0}
        stage.close()


@pytest.fixture(scope="module")
def expected(stages: tuple[Stage, Stage]) -> dict[str, np.ndarray]:
    return speak_alone(stages[0], REQUESTS)


@pytest.mark.thorough
def test_plain_in_company(stages: tuple[Stage, Stage], expected: dict[str, np.ndarray]) -> None:
    check(speak(stages[0], REQUESTS), expected)


@pytest.mark.parametrize("every", [0, 3])
def test_chunked_and_cached(
    stages: tuple[Stage, Stage], expected: dict[str, np.ndarray], every: int
) -> None:
    check(speak(stages[1], REQUESTS, every=every), expected)


def test_the_second_of_two_equal_prompts_is_cached(stages: tuple[Stage, Stage]) -> None:
    stage = stages[1]
    fresh = TinyInput(text=[5] * 70, max_frames=4)
    first_frame_after = []
    for name in ("first", "second"):
        stage.add(name, fresh, batch=False)
        steps = 0
        while not stage.step().chunks:
            steps += 1
        first_frame_after.append(steps)
        while stage.has_work():
            stage.step()
    assert first_frame_after == [4, 0]


def test_recompute_in_chunks(stages: tuple[Stage, Stage], expected: dict[str, np.ndarray]) -> None:
    names = [name for name in REQUESTS if name.startswith("r")]
    listener = listen_preempted(stages[1], {name: REQUESTS[name] for name in names})
    check({name: listener.frames(name) for name in names}, expected)


def check(frames: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    for request_id, codes in frames.items():
        np.testing.assert_array_equal(codes, expected[request_id], err_msg=request_id)


def test_a_long_prompt_does_not_delay_running_streams(stages: tuple[Stage, Stage]) -> None:
    """A step computes a bounded number of positions, running requests first."""
    stage = stages[1]
    stage.add("speaker", TinyInput(text=[3, 4], max_frames=30, min_frames=30), batch=False)
    while not stage.step().chunks:
        pass
    stage.add("new", TinyInput(text=[7] * 70, max_frames=4), batch=False)
    spoken: list[Any] = []
    while "new" not in (spoken[-1] if spoken else ()):
        spoken.append({chunk.request_id for chunk in stage.step().chunks})
    assert len(spoken) >= 4  # its prompt took several steps
    assert all("speaker" in step for step in spoken)
    for request_id in ("speaker", "new"):
        stage.abort(request_id)
    while stage.has_work():
        stage.step()
