"""Hidden states that leave an AR stage: each position once, the same in every company."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.config import ArDeployment, parse_deployment
from cantata.contract.data.errors import ConfigError
from cantata.contract.data.request import PipelineRequest, SamplingOptions
from cantata.contract.model.pipeline import StageKind, StageSpec
from cantata.contract.process.stage import Stage
from cantata.pipeline.orchestrator import Orchestrator
from cantata.stages.ar import build_stage
from tiny_talker.checkpoint import HIDDEN, save_tiny_checkpoint
from tiny_talker.decoder import SAMPLES_PER_FRAME
from tiny_talker.driving import EXPORTING, listen, listen_preempted, varied_payloads
from tiny_talker.inputs import TinyInput, TinyText
from tiny_talker.plugin import THINKING

pytestmark = pytest.mark.vllm

DEPLOYMENT = ArDeployment(
    slots=8, max_model_len=128, max_num_batched_tokens=16, prefix_caching=True
)
REQUESTS = varied_payloads(8)
FRAMES = 30
Rows = NDArray[np.float32]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="module")
def stage(checkpoint: Path) -> Iterator[Stage]:
    """Its prompts are prefilled in parts; `test_ar_runners.py` compares that with whole ones."""
    stage = build_stage(EXPORTING, checkpoint, DEPLOYMENT)
    yield stage
    assert set(stage.get_counts().values()) == {0}
    stage.close()


@pytest.fixture(scope="module")
def alone(stage: Stage) -> dict[str, Rows]:
    return {name: listen(stage, {name: asked}).rows(name) for name, asked in REQUESTS.items()}


def test_every_computed_position_has_its_row(stage: Stage, alone: dict[str, Rows]) -> None:
    for name, asked in REQUESTS.items():
        listener = listen(stage, {name: asked})
        made = sum(len(chunk.payload.values) for chunk in listener.chunks[name])
        ended_by_code = len(listener.chunks[name]) > made
        prompt = 1 if asked.track else len(asked.text)
        # The last frame, or the end code, is not fed back.
        assert alone[name].shape == (prompt + made - 1 + ended_by_code, 2 * HIDDEN)
        np.testing.assert_array_equal(alone[name][:, HIDDEN:], 2 * alone[name][:, :HIDDEN])


def test_a_row_is_what_its_frame_was_chosen_from(stage: Stage) -> None:
    greedy = TinyInput([5, 6, 7], FRAMES, FRAMES, sampling=SamplingOptions(temperature=0.0))
    listener = listen(stage, {"r": greedy})
    frames, rows = listener.frames("r"), listener.rows("r")
    talker = stage._talker  # type: ignore[attr-defined]
    head = talker.code0_head.weight.detach().double().numpy()
    scores = rows[len(greedy.text) - 1 :, :HIDDEN].astype(np.float64) @ head.T
    np.testing.assert_array_equal(scores[:, :-1].argmax(axis=1), frames[:, 0])


def test_alike_alone_and_in_company(stage: Stage, alone: dict[str, Rows]) -> None:
    listener = listen(stage, REQUESTS, every=2)
    for name, rows in alone.items():
        np.testing.assert_array_equal(listener.rows(name), rows, err_msg=name)


def test_nothing_is_repeated_after_preemption(stage: Stage, alone: dict[str, Rows]) -> None:
    listener = listen_preempted(stage, REQUESTS)
    for name, rows in alone.items():
        np.testing.assert_array_equal(listener.rows(name), rows, err_msg=name)


def test_rows_need_a_model_that_exports_them(checkpoint: Path) -> None:
    plain = "tiny_talker.talker:TinyTalker"
    spec = StageSpec("thinker", StageKind.AR, plain, outputs=EXPORTING.outputs)
    with pytest.raises(ConfigError, match="'thinker' has a port 'rows'; its model exports none"):
        build_stage(spec, checkpoint, DEPLOYMENT)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(checkpoint: Path) -> AsyncIterator[Orchestrator]:
    talker = {"slots": 4, "max_model_len": 128}
    stages = {"thinker": talker, "repeater": talker, "decoder": {"slots": 4}}
    deployment = parse_deployment({"stages": stages}, THINKING)
    orchestrator = Orchestrator(THINKING, checkpoint, deployment, logging.WARNING)
    await orchestrator.start()
    yield orchestrator
    await orchestrator.stop(deadline_s=5)


TEXTS = [[number, 9, 4, 7, 2, 8] for number in range(3)]


async def speak(pipeline: Orchestrator, name: str, text: list[int], so_far: int = 0) -> Rows:
    """What is heard of a text; with `so_far`, its end arrives once its beginning is heard."""
    beginning = text[:so_far] if so_far else text
    thinker = TinyInput(beginning, FRAMES, FRAMES, track=True, open=bool(so_far))
    inputs = {"thinker": thinker, "repeater": TinyInput(max_frames=FRAMES)}
    async with pipeline.open(PipelineRequest(name, inputs)) as opened:
        sound = pipeline.sound(opened)
        heard = [(await anext(sound)).payload.samples]
        if so_far:  # the thinker still waits for text
            await pipeline.extend(opened, "thinker", TinyText(text[so_far:]), final=True)
        heard += [chunk.payload.samples async for chunk in sound]
    return np.concatenate(heard)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_talker_speaks_from_the_rows_of_a_thinker_that_still_thinks(
    pipeline: Orchestrator,
) -> None:
    alone = [await speak(pipeline, f"alone {text[0]}", text) for text in TEXTS]
    together = await asyncio.gather(
        *(speak(pipeline, f"together {text[0]}", text, so_far=4) for text in TEXTS)
    )
    for sound, same in zip(alone, together, strict=True):
        assert len(sound) == FRAMES * SAMPLES_PER_FRAME
        np.testing.assert_array_equal(sound, same)
    assert len({sound.tobytes() for sound in alone}) == len(TEXTS)
    counts = [await stage.get_counts() for stage in pipeline.stages.values()]
    assert [what for stage in counts for what, count in stage.items() if count] == []
