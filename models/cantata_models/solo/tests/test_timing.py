"""Word timings: from slots by hand, and against the audio of the real voice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise

import numpy as np
import pytest
import pytest_asyncio
import torch
from numpy.typing import NDArray

from cantata.contract.data.request import PipelineRequest, SpeechRequest
from cantata.contract.service import SpokenWord
from cantata.pipeline.plan import plan_service
from cantata.pipeline.service import create_service
from cantata.pipeline.speech_model import PipelineSpeechModel
from cantata_models.solo.config import SoloConfig
from cantata_models.solo.plugin import TalkerInput
from cantata_models.solo.request_builder import SoloRequestBuilder
from cantata_models.solo.talker_front import word_timings
from cantata_models.solo.text.tokens import phone_ids
from tiers import LONG

AUDIBLE_DB = -40.0
"""Relative to the loudest 10 ms of the signal's slope, which excludes a voice's hum."""
TOLERANCE_S = 0.1
"""The closure of a first or last stop is silent."""


def test_a_word_lasts_from_its_first_phone_to_its_last() -> None:
    phones = torch.tensor(phone_ids(["SIL", "HH", "AY", "SIL", "Y", "UW", "AH", "SIL"]))
    starts = torch.tensor([False, True, False, False, True, False, True, False])
    slots = torch.tensor([2, 3, 4, 5, 6, 7, 8, 5])
    timings = word_timings(phones, starts, slots, lag_s=0.015)
    assert [word.index for word in timings] == [0, 1, 2]
    seconds = [time for word in timings for time in (word.start_s, word.end_s)]
    slots_passed = [2, 9, 14, 27, 27, 35]
    assert seconds == pytest.approx([0.02 * passed + 0.015 for passed in slots_passed])


def talker_input(piece: PipelineRequest) -> TalkerInput:
    found = piece.inputs["talker"]
    assert isinstance(found, TalkerInput)
    return found


def test_spoken_words_stand_where_the_text_has_them() -> None:
    builder = SoloRequestBuilder(SoloConfig())
    text = "It costs $3.50, she said. Really?"
    first, second = builder.build("r", SpeechRequest(text, "clara"))
    for piece in (first, second):
        assert len(piece.words) == talker_input(piece).word_starts.sum()
    spoken = [text[span.start : span.end] for span in (*first.words, *second.words)]
    assert list(dict.fromkeys(spoken)) == ["It", "costs", "$3.50", "she", "said", "Really"]


@pytest.mark.parametrize(("stretch", "distinct"), [(0.5, False), (1.0, False), (1.5, True)])
def test_only_speech_that_is_played_faster_is_distinct(stretch: float, distinct: bool) -> None:
    request = SpeechRequest("Hello.", "clara", stretch=stretch)
    (piece,) = SoloRequestBuilder(SoloConfig()).build("r", request)
    assert talker_input(piece).distinct is distinct


TEXTS = (
    "She opened the letter, read it twice, and put it back on the table.",
    "We bought bread, cheese, two apples and a bottle of water.",
    "Could you tell me where the library is?",
    "Stop.",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model() -> AsyncIterator[PipelineSpeechModel]:
    service = create_service(plan_service("solo"))
    await service.start()
    yield service.get_model("solo")
    await service.stop()


async def speak(
    model: PipelineSpeechModel, request: SpeechRequest
) -> tuple[NDArray[np.float32], list[SpokenWord]]:
    async with model.run(request) as utterance:
        chunks = [chunk async for chunk in utterance]
    samples = np.concatenate([chunk.samples for chunk in chunks])
    return samples, [word for chunk in chunks for word in chunk.words]


def audible(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.bool_]:
    """Whether each 10 ms is audible."""
    hop = sample_rate // 100
    samples = np.diff(samples[:, 0], prepend=np.float32(0.0))
    power = np.square(samples[: len(samples) // hop * hop].reshape(-1, hop)).mean(axis=1)
    loud: NDArray[np.bool_] = power > power.max() * 10 ** (AUDIBLE_DB / 10)
    return loud


@pytest.mark.thorough(every=3)
@pytest.mark.integration
@pytest.mark.long
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("text", "speed"), [*((text, 1.0) for text in TEXTS), (TEXTS[1], 2.0)])
async def test_times_agree_with_the_sound(
    model: PipelineSpeechModel, text: str, speed: float
) -> None:
    """In full, in every voice; in short, the voices take turns."""
    voices = model.voices if LONG else model.voices[TEXTS.index(text) % 2 :: 2]
    for voice in voices:
        samples, words = await speak(model, SpeechRequest(text, voice.id, speed=speed))
        spoken = [text[word.text_start : word.text_end] for word in words]
        assert spoken == text.replace(",", "").rstrip(".?").split()
        loud = audible(samples, model.sample_rate)
        heard = np.flatnonzero(loud) / 100
        assert words[0].start_s == pytest.approx(heard[0], abs=TOLERANCE_S)
        assert words[-1].end_s == pytest.approx(heard[-1] + 0.01, abs=TOLERANCE_S)
        for word, following in pairwise(words):
            assert word.start_s < word.end_s <= following.start_s
            if text[word.text_end] == ",":
                around = slice(
                    round(100 * (word.end_s - TOLERANCE_S)),
                    round(100 * (following.start_s + TOLERANCE_S)),
                )
                assert not loud[around].all(), (voice.id, spoken, word)
