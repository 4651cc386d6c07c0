"""A whole text through real stage processes: words, pauses, and what a long one leaves behind."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator

import numpy as np
import psutil
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.config import parse_deployment
from cantata.contract.data.errors import InvalidRequest, RequestFailed
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import SpokenWord
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.service import ServedPipeline
from cantata.pipeline.slot_policy import SlotPolicy
from cantata.pipeline.speech_model import PipelineSpeechModel
from tiers import scaled
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.plugin import FRAMES_PER_WORD, PIPELINE, PLUGIN, TinyRequestBuilder

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

MAX_INPUT_CHARACTERS = 20_000
SAMPLE_RATE = 50
WORD_S = FRAMES_PER_WORD * 0.08


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PipelineSpeechModel]:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(folder)
    settings = {
        "max_input_characters": MAX_INPUT_CHARACTERS,
        "stages": {
            "talker": {"slots": 4, "max_model_len": 128},
            "decoder": {"slots": 4, "credit_s": 5.0},
        },
    }
    deployment = parse_deployment(settings, PIPELINE)
    orchestrator = Orchestrator(PIPELINE, folder, deployment, logging.WARNING)
    policy, limit = SlotPolicy(PLUGIN.name, orchestrator), deployment.max_input_characters
    model = PipelineSpeechModel(TinyRequestBuilder(), policy, limit, deployment.sampled, {})
    await ServedPipeline(policy, (model,)).start()
    yield model
    await orchestrator.stop(deadline_s=5)


async def held(model: PipelineSpeechModel) -> dict[str, int]:
    return {
        f"{name}.{what}": count
        for name, stage in model.orchestrator.stages.items()
        for what, count in (await stage.get_counts()).items()
        if count
    }


async def speak(
    model: PipelineSpeechModel, text: str, speed: float = 1.0
) -> tuple[NDArray[np.float32], list[SpokenWord]]:
    async with model.run(SpeechRequest(text, "tiny", speed=speed)) as utterance:
        chunks = [chunk async for chunk in utterance]
    samples = np.concatenate([chunk.samples for chunk in chunks])
    return samples, [word for chunk in chunks for word in chunk.words]


async def test_a_warm_up_that_fails_tells_why(
    model: PipelineSpeechModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start_again() -> None:
        """The stages run already."""

    async def fail() -> None:
        raise RequestFailed("no such kernel")

    monkeypatch.setattr(model.orchestrator, "start", start_again)
    with pytest.raises(RequestFailed, match="no such kernel"):
        await SlotPolicy("tiny", model.orchestrator).start(fail)


async def test_words_have_their_place_in_the_text_and_their_time(
    model: PipelineSpeechModel,
) -> None:
    text = "One two. Three [pause 500ms] four."
    samples, words = await speak(model, text)
    assert len(samples) == SAMPLE_RATE * (4 * WORD_S + 0.5)
    spoken = [text[word.text_start : word.text_end] for word in words]
    assert spoken == ["One", "two", "Three", "four"]
    starts = [0, WORD_S, 2 * WORD_S, 3 * WORD_S + 0.5]
    assert [word.start_s for word in words] == pytest.approx(starts)
    assert [word.end_s for word in words] == pytest.approx([start + WORD_S for start in starts])


async def test_words_arrive_before_the_end_of_their_sound(model: PipelineSpeechModel) -> None:
    async with model.run(SpeechRequest("One two three. Four five six.", "tiny")) as utterance:
        made, told = 0, 0
        async for chunk in utterance:
            told += len(chunk.words)
            made += len(chunk.samples)
            assert told * WORD_S >= made / SAMPLE_RATE
    assert told == 6


async def test_a_pause_is_silence_between_what_each_part_says_alone(
    model: PipelineSpeechModel,
) -> None:
    whole, _ = await speak(model, "[pause 1s]One two. Three[pause 500ms]four [pause 20ms]")
    first, _ = await speak(model, "One two. Three")
    second, _ = await speak(model, "four")
    silence = [np.zeros((count, 1), np.float32) for count in (50, 25, 1)]
    expected = np.concatenate([silence[0], first, silence[1], second, silence[2]])
    np.testing.assert_array_equal(whole, expected)
    assert await held(model) == {}


@pytest.mark.parametrize("speed", [0.25, 0.5, 2.0, 4.0])
async def test_a_model_without_a_pace_of_its_own_speaks_at_every_speed(
    model: PipelineSpeechModel, speed: float
) -> None:
    """Words and sound stay in sync; a pause is as long as requested."""
    text = "One two. Three [pause 500ms] four."
    samples, words = await speak(model, text, speed)
    word_s = WORD_S / speed
    assert len(samples) == pytest.approx(SAMPLE_RATE * (4 * word_s + 0.5), abs=1.5)
    starts = [0, word_s, 2 * word_s, 3 * word_s + 0.5]
    assert [word.start_s for word in words] == pytest.approx(starts, abs=0.02)
    assert [word.end_s for word in words] == pytest.approx([s + word_s for s in starts], abs=0.02)
    pause = round(SAMPLE_RATE * 3 * word_s)
    assert not samples[pause + 1 : pause + 24].any()
    assert await held(model) == {}


async def test_stretched_sound_is_the_same_alone_and_in_company(model: PipelineSpeechModel) -> None:
    text = "One two three four. Five six seven."
    alone = [(await speak(model, text, speed))[0] for speed in (0.5, 1.0, 1.7, 3.0)]
    together = await asyncio.gather(*(speak(model, text, speed) for speed in (0.5, 1.0, 1.7, 3.0)))
    for one, (other, _) in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


async def test_a_stretched_utterance_that_is_left_is_freed(model: PipelineSpeechModel) -> None:
    async with model.run(SpeechRequest("One two three. Four.", "tiny", speed=3.0)) as utterance:
        async for _ in utterance:
            break
    assert await held(model) == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "input is empty"),
        ("One [pause soon] two.", r"'\[pause soon\]' at character 4"),
        ("x" * (MAX_INPUT_CHARACTERS + 1), "at most 20000"),
    ],
)
async def test_text_without_speech_is_rejected(
    model: PipelineSpeechModel, text: str, says: str
) -> None:
    with pytest.raises(InvalidRequest, match=says) as refusal:
        await speak(model, text)
    assert refusal.value.param == "input"
    assert await held(model) == {}


@pytest.mark.long
async def test_many_minutes_need_no_more_memory_than_one(model: PipelineSpeechModel) -> None:
    minutes, settled_s = scaled(2, 10), scaled(30, 60)
    words_in_all = 150 * minutes
    words = [f"word{number % 97}" for number in range(words_in_all)]
    text = " ".join(word + "." * (number % 10 == 9) for number, word in enumerate(words))
    pids = [os.getpid(), *(stage.pid for stage in model.orchestrator.stages.values())]
    processes = [psutil.Process(pid) for pid in pids]
    before: list[int] = []
    made, heard = 0, 0
    async with model.run(SpeechRequest(text, "tiny")) as utterance:
        async for chunk in utterance:
            made += len(chunk.samples)
            heard += len(chunk.words)
            if made > settled_s * SAMPLE_RATE and not before:
                before = [process.memory_info().rss for process in processes]
    assert made == 60 * minutes * SAMPLE_RATE
    assert heard == len(words)
    growth = [p.memory_info().rss - r for p, r in zip(processes, before, strict=True)]
    assert max(growth) < scaled(4, 8) << 20, growth
    assert await held(model) == {}
