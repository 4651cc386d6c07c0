"""Served, a window of sound is written down as the reference writes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from cantata.config.plugins import locate
from cantata.contract.data.chunks import Codes
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.contract.transcription_service import TranscriptionModel
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.qwen3_asr.aligner import split_words
from cantata_models.qwen3_asr.config import ALIGNER_FOLDER
from cantata_models.qwen3_asr.random_checkpoint import write_aligner, write_checkpoint
from cantata_models.qwen3_asr.tests.parity.scenarios import SCENARIOS, Qwen3AsrScenario
from cantata_models.qwen3_asr.tests.parity.write_goldens import SCORE_STRIDE
from cantata_models.qwen3_asr.tests.thinker_driver import golden
from cantata_models.qwen3_asr.transcription_builder import Qwen3AsrBuilder
from served import plan_small, started

pytestmark = pytest.mark.integration
asynchronous = pytest.mark.asyncio(loop_scope="module")

SEED = 1
ENDED = [one for one in SCENARIOS if one.seed == SEED]
"""Whose answers the reference did not cut."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TranscriptionModel]:
    folder = write_checkpoint(tmp_path_factory.mktemp("asr"), SEED)
    write_aligner(folder / ALIGNER_FOLDER, SEED)
    plan = plan_small(folder, thinker={"max_model_len": 2048, "kv_positions": 4096})
    async with started(plan) as service:
        yield service.transcription_models["qwen3-asr"]


async def recognized(
    model: TranscriptionModel,
    scenario: Qwen3AsrScenario,
    pieces: int = 1,
    *,
    timestamps: bool = False,
    logprobs: bool = False,
) -> Transcript:
    request = TranscriptionRequest(
        scenario.language, scenario.prompt, timestamps=timestamps, logprobs=logprobs
    )
    async with model.run(request) as window:
        for piece in np.array_split(scenario.samples, pieces):
            await window.feed(piece)
        return await window.finish()


@pytest.mark.parametrize("scenario", ENDED, ids=lambda scenario: scenario.name)
@asynchronous
async def test_a_transcript_is_the_reference_s(
    model: TranscriptionModel, scenario: Qwen3AsrScenario
) -> None:
    transcript = await recognized(model, scenario, pieces=3)
    assert transcript.text == str(golden(scenario, "text"))
    assert transcript.language == (scenario.language or "")
    assert transcript.seconds == len(scenario.samples) / 16_000


@asynchronous
async def test_together_each_is_what_it_is_alone(model: TranscriptionModel) -> None:
    together = await asyncio.gather(*(recognized(model, scenario) for scenario in ENDED[:4]))
    assert [one.text for one in together] == [str(golden(one, "text")) for one in ENDED[:4]]


@asynchronous
async def test_a_window_without_sound_ends(model: TranscriptionModel) -> None:
    transcript = await recognized(model, Qwen3AsrScenario("none", np.zeros(0, np.float32)))
    assert transcript.seconds == 0


@asynchronous
async def test_a_window_that_is_left_is_freed(model: TranscriptionModel) -> None:
    async with model.run(TranscriptionRequest()) as window:
        await window.feed(ENDED[0].samples)
    assert model.admission.running == 0
    assert model.admission.slots_in_use == 0


@asynchronous
async def test_an_unknown_language_is_refused(model: TranscriptionModel) -> None:
    with pytest.raises(InvalidRequest, match="klingon"):
        await recognized(model, Qwen3AsrScenario("unknown", ENDED[0].samples, "klingon"))
    assert model.admission.slots_in_use == 0


@asynchronous
async def test_the_model_says_what_it_does(model: TranscriptionModel) -> None:
    assert not model.has_partials
    assert model.has_timestamps
    assert not model.translates
    assert model.languages[:2] == ("zh", "en")


@asynchronous
async def test_words_have_times_if_they_are_wanted(model: TranscriptionModel) -> None:
    english = next(one for one in ENDED if one.language == "en")
    plain, timed = [await recognized(model, english, timestamps=wanted) for wanted in (False, True)]
    assert plain.text == timed.text == str(golden(english, "text"))
    assert plain.words == ()
    assert timed.words
    assert [word.text for word in timed.words] == [unit.written for unit in split_words(timed.text)]
    assert all(0 <= word.start_s <= word.end_s <= timed.seconds for word in timed.words)


@asynchronous
async def test_tokens_have_probabilities_if_they_are_wanted(
    model: TranscriptionModel, tmp_path: Path
) -> None:
    english = next(one for one in ENDED if one.language == "en")
    plain, likely = [await recognized(model, english, logprobs=wanted) for wanted in (False, True)]
    assert plain.logprobs == ()
    # Random tokens are seldom whole characters.
    written = b"".join(bytes(one.data) for one in likely.logprobs).decode(errors="replace")
    assert written.strip() == likely.text
    assert plain.text == likely.text
    # All that the reference has written, but for control tokens; the golden has every fifth score.
    scores, answer = golden(english, "scores"), golden(english, "answer").tolist()
    added = load_qwen_tokenizer(write_checkpoint(tmp_path, SEED)).get_added_tokens_decoder()
    controls = [number for number, token in added.items() if token.special]
    spoken = [(place, token) for place, token in enumerate(answer) if token not in controls]
    assert len(likely.logprobs) == len(spoken)
    compared = 0
    for found, (place, token) in zip(likely.logprobs, spoken, strict=True):
        if token % SCORE_STRIDE == 0:
            expected = scores[place, token // SCORE_STRIDE]
            assert found.logprob == pytest.approx(expected, abs=1e-3)
            compared += 1
    assert compared


def test_without_an_aligner_the_thinker_s_tokens_are_read(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, SEED)
    assert [stage.name for stage in locate(str(folder)).pipeline.stages] == ["encoder", "thinker"]
    builder = Qwen3AsrBuilder(folder)
    assert (builder.output, builder.has_timestamps) == ("thinker.codes", False)
    assert set(builder.build("r", TranscriptionRequest(), ENDED[0].samples).inputs) == {
        "encoder",
        "thinker",
    }
    reader = builder.reader()
    answer = load_qwen_tokenizer(folder).encode("language English<asr_text>Good morning.").ids
    for tokens in (answer[:3], answer[3:], []):
        likely = tuple(-0.5 * token for token in tokens)
        reader.read(Codes(np.array(tokens, np.int32).reshape(-1, 1), logprobs=likely))
    said = reader.end()
    assert replace(said, logprobs=()) == Transcript("Good morning.", "en")
    assert "".join(one.text for one in said.logprobs) == "Good morning."
    text = load_qwen_tokenizer(folder).encode("Good morning.").ids
    assert [one.logprob for one in said.logprobs] == [-0.5 * token for token in text]
