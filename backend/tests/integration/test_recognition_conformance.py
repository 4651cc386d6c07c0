"""What every model that transcribes must do, through the whole pipeline: with the weights that it
ships, and with random ones in its own format."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from cantata.config.deployment import Dtype
from cantata.config.plugins import load_plugins
from cantata.contract.data.errors import CantataError, InvalidRequest
from cantata.contract.data.languages import has_language
from cantata.contract.data.transcripts import SPEECH_RATE, Transcript, TranscriptionRequest
from cantata.contract.model.pipeline import StageKind
from cantata.contract.model.recognizer import Sound
from cantata.contract.transcription_service import Recognition
from cantata.pipeline.plan import plan_service
from cantata.pipeline.service import create_service
from cantata.pipeline.transcription_model import PipelineTranscriptionModel

PLUGINS = {
    name: plugin for name, plugin in load_plugins().items() if plugin.load_transcription_builder
}
RANDOM = "-random"
SERVED = [
    *(f"{name}{RANDOM}" for name, plugin in PLUGINS.items() if plugin.write_random_checkpoint),
    *(
        pytest.param(name, marks=pytest.mark.thorough)
        for name, plugin in PLUGINS.items()
        if plugin.embedded_checkpoint
    ),
]
MAX_S = 30.0
"""Windows of models that take longer ones are no longer here."""
DEADLINE_S = 60.0
SECONDS = (0.9, 1.2, 0.3, 0.7, 1.2, 0.5)
"""Of the windows that are recognized together."""

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.parametrize("model", SERVED, indirect=True, scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PipelineTranscriptionModel]:
    name, is_random, _ = request.param.partition(RANDOM)
    plugin = PLUGINS[name]
    checkpoint: str | Path = name
    if is_random:
        assert plugin.write_random_checkpoint is not None
        checkpoint = tmp_path_factory.mktemp("checkpoint")
        plugin.write_random_checkpoint(checkpoint)
    kinds = {stage.kind for stage in plugin.pipeline.stages}
    # Backbones on vLLM depend on what is beside them in other types.
    dtype: Dtype | None = "float32" if StageKind.AR in kinds else None
    service = create_service(plan_service(str(checkpoint), None, dtype))
    await service.start()
    found = service.transcription_models[name]
    assert isinstance(found, PipelineTranscriptionModel)
    yield found
    await service.stop()


@pytest.fixture
def plain(model: PipelineTranscriptionModel) -> TranscriptionRequest:
    """Greedy, in the last language that the model knows."""
    language = model.languages[-1]
    return TranscriptionRequest(language, temperature=0.0, timestamps=True, logprobs=True)


def make_sound(number: int, seconds: float = 0.8) -> Sound:
    """[N] a rising tone in noise."""
    rng = np.random.default_rng(number)
    times = np.arange(round(seconds * SPEECH_RATE)) / SPEECH_RATE
    tone = np.sin(2 * np.pi * rng.uniform(100, 900) * times * (1 + times))
    return (0.2 * tone + rng.normal(0, 0.02, len(times))).astype(np.float32)


async def transcribe(
    model: PipelineTranscriptionModel,
    request: TranscriptionRequest,
    sound: Sound,
    pieces: int = 1,
    *,
    asks: bool = False,
) -> Transcript:
    async with model.run(request) as window, asyncio.timeout(DEADLINE_S):
        for piece in np.array_split(sound, pieces):
            await window.feed(piece, recognize=asks)
        return await window.finish()


async def assert_nothing_held(model: PipelineTranscriptionModel) -> None:
    assert model.admission.running == model.admission.slots_in_use == 0
    for stage in model.orchestrator.stages.values():
        assert not any((await stage.get_counts()).values())


def list_requests(plain: TranscriptionRequest) -> Sequence[TranscriptionRequest]:
    """Different kinds: of speakers and of files, with a prompt, drawn."""
    return (
        plain,
        replace(plain, prompt="Names: Ada, Charles."),
        replace(plain, language=None, temperature=None),
        replace(plain, temperature=0.8),
        replace(plain, batch=True),
        replace(plain, timestamps=False, logprobs=False),
    )


@pytest.mark.thorough(every=2)
async def test_in_company_each_window_is_what_it_is_alone(
    model: PipelineTranscriptionModel, plain: TranscriptionRequest
) -> None:
    """Text, times, probabilities: bit for bit."""
    asked = [
        (request, make_sound(number, seconds))
        for number, (request, seconds) in enumerate(zip(list_requests(plain), SECONDS, strict=True))
    ]
    asked += [(plain, make_sound(number)) for number in range(3)]
    alone = [await transcribe(model, *one) for one in asked]
    together = await asyncio.gather(*(transcribe(model, *one) for one in asked))
    assert together == alone
    backwards = await asyncio.gather(*(transcribe(model, *one, pieces=3) for one in asked[::-1]))
    assert backwards[::-1] == alone
    await assert_nothing_held(model)


async def test_a_transcript_says_what_it_covers(
    model: PipelineTranscriptionModel, plain: TranscriptionRequest
) -> None:
    sound = make_sound(1)
    for request in list_requests(plain):
        heard = await transcribe(model, request, sound)
        assert heard.seconds == len(sound) / SPEECH_RATE
        assert heard.text == heard.text.strip()
        assert not heard.language or has_language(model.languages, heard.language)
        assert request.temperature is None or heard.temperature in (0.0, request.temperature)
        assert heard.avg_logprob is None or heard.avg_logprob <= 0
        assert heard.no_speech_prob is None or 0 <= heard.no_speech_prob <= 1


async def test_words_are_in_order_and_inside_the_sound(
    model: PipelineTranscriptionModel, plain: TranscriptionRequest
) -> None:
    for number in range(3):
        heard = await transcribe(model, plain, make_sound(number, 0.333 * (number + 1)))
        edges = [edge for word in heard.words for edge in (word.start_s, word.end_s)]
        assert edges == sorted(edges)
        assert all(0 <= edge <= heard.seconds for edge in edges)
        assert all(0 <= word.probability <= 1 and word.text.strip() for word in heard.words)
        assert "".join(word.text for word in heard.words).split() == (
            "".join(heard.text.split()).split() if model.has_timestamps else []
        )


async def test_tokens_are_the_text_and_come_only_if_asked_for(
    model: PipelineTranscriptionModel, plain: TranscriptionRequest
) -> None:
    sound = make_sound(2)
    heard = await transcribe(model, plain, sound)
    written = b"".join(bytes(token.data) for token in heard.logprobs).decode(errors="replace")
    assert written.strip() == heard.text
    assert all(token.logprob <= 0 for token in heard.logprobs)
    bare = await transcribe(model, replace(plain, timestamps=False, logprobs=False), sound)
    assert (bare.text, bare.words, bare.logprobs) == (heard.text, (), ())


async def test_a_drawn_text_is_drawn_again(
    model: PipelineTranscriptionModel, plain: TranscriptionRequest
) -> None:
    drawn = replace(plain, temperature=1.0)
    first = await transcribe(model, drawn, make_sound(3))
    await transcribe(model, drawn, make_sound(4))
    assert await transcribe(model, drawn, make_sound(3)) == first


@pytest.mark.parametrize("samples", [0, 1, 100, SPEECH_RATE // 10])
async def test_little_or_no_sound_is_no_error(
    model: PipelineTranscriptionModel, plain: TranscriptionRequest, samples: int
) -> None:
    heard = await transcribe(model, plain, make_sound(0)[:samples])
    assert heard.seconds == samples / SPEECH_RATE
    assert all(0 <= word.start_s <= word.end_s <= heard.seconds for word in heard.words)
    await assert_nothing_held(model)


async def test_the_longest_window_is_heard_and_a_longer_one_refused(
    model: PipelineTranscriptionModel, plain: TranscriptionRequest
) -> None:
    longest = round(model.max_window_s * SPEECH_RATE)
    whole = make_sound(5, min(model.max_window_s, MAX_S))
    heard = await transcribe(model, plain, whole)
    assert heard.seconds == len(whole) / SPEECH_RATE
    with pytest.raises(InvalidRequest, match=f"valid: up to {model.max_window_s:g} s"):
        await transcribe(model, plain, np.zeros(longest + 1, np.float32), pieces=2)
    await assert_nothing_held(model)


async def test_what_the_model_cannot_do_is_refused_with_what_it_can(
    model: PipelineTranscriptionModel, plain: TranscriptionRequest
) -> None:
    with pytest.raises(InvalidRequest, match=model.languages[0]) as refusal:
        await transcribe(model, replace(plain, language="tlh"), make_sound(0))
    assert refusal.value.param == "language"
    translated = replace(plain, translate=True)
    if model.translates:
        assert (await transcribe(model, translated, make_sound(0))).seconds
    else:
        with pytest.raises(InvalidRequest):
            await transcribe(model, translated, make_sound(0))
    await assert_nothing_held(model)


async def test_samples_that_are_no_numbers_harm_nobody_else(
    model: PipelineTranscriptionModel, plain: TranscriptionRequest
) -> None:
    broken = np.full(SPEECH_RATE, np.nan, np.float32)
    expected = await transcribe(model, plain, make_sound(6))
    refused, heard = await asyncio.gather(
        transcribe(model, plain, broken),
        transcribe(model, plain, make_sound(6)),
        return_exceptions=True,
    )
    assert isinstance(refused, CantataError | Transcript)
    assert heard == expected
    await assert_nothing_held(model)


async def read_partials(window: Recognition) -> list[Transcript]:
    return [partial async for partial in window.partials()]


async def test_partial_transcripts_grow_and_the_last_one_replaces_them(
    model: PipelineTranscriptionModel, plain: TranscriptionRequest
) -> None:
    sound = make_sound(7, 1.2)
    expected = await transcribe(model, plain, sound)
    pieces = np.array_split(sound, 3)
    async with model.run(plain) as window, asyncio.timeout(DEADLINE_S):
        partials = window.partials()
        for number in (1, 2) if model.has_partials else ():
            await window.feed(pieces[number - 1], recognize=True)
            partial = await anext(aiter(partials))
            so_far = np.concatenate(pieces[:number])
            assert partial == await transcribe(model, plain, so_far)
        for piece in pieces[2 if model.has_partials else 0 :]:
            await window.feed(piece)
        rest = asyncio.create_task(read_partials(window))
        final = await window.finish()
        assert await rest == [], "they end with the window"
    assert final == expected
    assert await transcribe(model, plain, sound, pieces=4, asks=True) == expected


async def until_running(model: PipelineTranscriptionModel, windows: int) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while model.admission.running != windows:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_who_leaves_or_is_cancelled_frees_the_window_and_changes_no_other(
    model: PipelineTranscriptionModel, plain: TranscriptionRequest
) -> None:
    async def leave() -> None:
        async with model.run(plain) as window:
            await window.feed(make_sound(8), recognize=True)

    expected = [await transcribe(model, plain, make_sound(number)) for number in range(3)]
    cancelled = asyncio.create_task(transcribe(model, plain, make_sound(9, 2.0)))
    others = [asyncio.create_task(transcribe(model, plain, make_sound(n))) for n in range(3)]
    await until_running(model, 4)
    cancelled.cancel()
    await leave()
    assert await asyncio.gather(*others) == expected
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    await assert_nothing_held(model)
