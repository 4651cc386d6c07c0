"""A model that listens, in a process of its own: partial transcripts, places, faults."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import weakref
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from cantata.config import load_deployment
from cantata.config.plugins import list_embedded_recognizers, locate
from cantata.contract.data.errors import InvalidRequest, Overloaded, StageDied
from cantata.contract.data.transcripts import SPEECH_RATE, Transcript, TranscriptionRequest
from cantata.contract.model.recognizer import Sound
from cantata.contract.transcription_service import Recognition
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import create_service
from cantata.pipeline.transcription_model import PipelineTranscriptionModel
from cantata.stages.recognition.stage import NICENESS_OF_FILES
from cantata_bench.asr import word_error_rate
from cantata_models.whisper.tests.spoken import spoken_sentences

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

NAME = list_embedded_recognizers()[0]
SLOTS = 4
DEADLINE_S = 60.0
LIVE = TranscriptionRequest()
FILE = TranscriptionRequest(batch=True)
QUIET = np.zeros(SPEECH_RATE // 10, np.float32)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model() -> AsyncIterator[PipelineTranscriptionModel]:
    """Whose first request comes while it loads."""
    located = locate(NAME)
    deployment = load_deployment(located.plugin.deployment, located.pipeline)
    stages = {
        name: stage.model_copy(update={"slots": SLOTS}) for name, stage in deployment.stages.items()
    }
    few = deployment.model_copy(update={"stages": stages})
    service = create_service(ServicePlan(located, located.pipeline, few))
    found = service.transcription_models[NAME]
    assert isinstance(found, PipelineTranscriptionModel)
    assert found.admission.places == 0, "not yet"
    early = asyncio.create_task(transcribe(found, spoken_sentences()[0].sound))
    await service.start()
    async with asyncio.timeout(DEADLINE_S):
        assert word_error_rate([spoken_sentences()[0].text], [(await early).text]) < 0.2
    yield found
    assert found.admission.slots_in_use == 0
    await service.stop()


async def transcribe(
    model: PipelineTranscriptionModel, sound: Sound, request: TranscriptionRequest = LIVE
) -> Transcript:
    async with model.run(request) as window:
        for piece in np.array_split(sound, 5):
            await window.feed(piece)
        return await window.finish()


async def read_partials(window: Recognition) -> list[Transcript]:
    return [partial async for partial in window.partials()]


async def until_waiting(model: PipelineTranscriptionModel, windows: int) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while model.admission.waiting_batch != windows:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_window_is_written_down(model: PipelineTranscriptionModel) -> None:
    sound = spoken_sentences()[0].sound
    plain, timed = await asyncio.gather(
        transcribe(model, sound), transcribe(model, sound, TranscriptionRequest(timestamps=True))
    )
    assert plain.text == timed.text
    assert word_error_rate([spoken_sentences()[0].text], [plain.text]) < 0.2
    assert plain.seconds == len(sound) / SPEECH_RATE
    assert not plain.words
    assert [word.text for word in timed.words] == timed.text.split()
    starts = [word.start_s for word in timed.words]
    assert starts == sorted(starts)
    assert model.admission.running == 0


async def test_partials_grow_and_the_last_transcript_is_none(
    model: PipelineTranscriptionModel,
) -> None:
    pieces = np.array_split(spoken_sentences()[0].sound, 3)
    async with model.run(LIVE) as window, asyncio.timeout(DEADLINE_S):
        partials = window.partials()
        found = []
        for piece in pieces[:2]:
            await window.feed(piece, recognize=True)
            found.append(await anext(partials))
        rest = asyncio.create_task(read_partials(window))
        await window.feed(pieces[2])
        final = await window.finish()
        assert await rest == [], "it ends with the window"
    seconds = [partial.seconds for partial in found]
    assert seconds == [len(pieces[0]) / SPEECH_RATE, sum(map(len, pieces[:2])) / SPEECH_RATE]
    assert len(found[0].text) < len(found[1].text) < len(final.text)
    assert word_error_rate([spoken_sentences()[0].text], [final.text]) < 0.2


async def test_one_reads_partials_while_another_finishes(model: PipelineTranscriptionModel) -> None:
    for asks in (False, True):
        async with model.run(LIVE) as window, asyncio.timeout(DEADLINE_S):
            reading = asyncio.create_task(read_partials(window))
            await window.feed(spoken_sentences()[0].sound, recognize=asks)
            final = await window.finish()
            partials = await reading
        assert word_error_rate([spoken_sentences()[0].text], [final.text]) < 0.2
        # If both are there at once, the last transcript is enough.
        assert {partial.text for partial in partials} <= {final.text}


async def test_a_reader_that_is_cancelled_takes_nothing_with_it(
    model: PipelineTranscriptionModel,
) -> None:
    async with model.run(LIVE) as window, asyncio.timeout(DEADLINE_S):
        reading = asyncio.create_task(read_partials(window))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await window.feed(spoken_sentences()[0].sound)
        assert (await window.finish()).text


async def test_a_window_without_sound_has_no_words(model: PipelineTranscriptionModel) -> None:
    async with model.run(LIVE) as window:
        assert (await window.finish()).text == ""


async def test_who_leaves_or_is_cancelled_frees_the_slot(model: PipelineTranscriptionModel) -> None:
    async with model.run(LIVE) as window:
        await window.feed(spoken_sentences()[0].sound, recognize=True)
        assert model.admission.slots_in_use == 1
    assert model.admission.slots_in_use == model.admission.running == 0
    begun = asyncio.Event()

    async def listen() -> None:
        async with model.run(LIVE) as window:
            await window.feed(spoken_sentences()[0].sound, recognize=True)
            begun.set()
            await read_partials(window)

    listening = asyncio.create_task(listen())
    await begun.wait()
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    assert model.admission.slots_in_use == model.admission.running == 0
    (stage,) = model.orchestrator.stages.values()
    assert (await stage.get_counts())["requests"] == 0


async def test_a_window_s_sound_is_freed_with_it(model: PipelineTranscriptionModel) -> None:
    sound = QUIET.copy()
    kept = weakref.ref(sound)
    async with model.run(LIVE) as window:
        await window.feed(sound)
        del sound
        assert kept() is not None
        await window.finish()
    del window
    gc.collect()
    assert kept() is None


async def test_too_much_sound_ends_the_window_for_all_who_wait(
    model: PipelineTranscriptionModel,
) -> None:
    long = np.zeros(round(model.max_window_s * SPEECH_RATE) + 1, np.float32)
    async with model.run(LIVE) as window, asyncio.timeout(DEADLINE_S):
        reading = asyncio.create_task(read_partials(window))
        await asyncio.sleep(0)
        await window.feed(long)
        # What follows is not even kept.
        more = QUIET.copy()
        dropped = weakref.ref(more)
        await window.feed(more)
        del more
        assert dropped() is None
        for waiting in (reading, window.finish()):
            with pytest.raises(InvalidRequest, match="valid: up to 30 s"):
                await waiting
    assert model.admission.slots_in_use == 0


async def test_an_option_that_cannot_be_served_is_refused(
    model: PipelineTranscriptionModel,
) -> None:
    for request in (TranscriptionRequest("tlh"), TranscriptionRequest(translate=True)):
        with pytest.raises(InvalidRequest):
            async with model.run(request):
                pass
    assert model.admission.running == 0


async def test_files_get_half_of_the_slots_and_wait_for_them(
    model: PipelineTranscriptionModel,
) -> None:
    async with AsyncExitStack() as files:
        for _ in range(SLOTS // 2):
            await files.enter_async_context(model.run(FILE))
        waiting = asyncio.create_task(transcribe(model, QUIET, FILE))
        await until_waiting(model, 1)
        await transcribe(model, QUIET)
        assert not waiting.done()
    async with asyncio.timeout(DEADLINE_S):
        await waiting


def read_threads(pid: int) -> dict[str, tuple[int, int]]:
    """Niceness, and ticks of processor time, of each thread of a process."""
    found = {}
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        found[stat.parent.name] = int(fields[16]), int(fields[11]) + int(fields[12])
    return found


async def test_a_file_is_recognized_in_threads_that_leave_the_cpu_to_others(
    model: PipelineTranscriptionModel,
) -> None:
    (stage,) = model.orchestrator.stages.values()
    assert stage.pid is not None
    own = os.getpriority(os.PRIO_PROCESS, stage.pid)
    sound = spoken_sentences()[0].sound
    for request, niceness in ((FILE, min(own + NICENESS_OF_FILES, 19)), (LIVE, own)):
        await transcribe(model, sound, request)
        before = read_threads(stage.pid)
        await transcribe(model, sound, request)
        took: Counter[int] = Counter()
        for thread, (nice, ticks) in read_threads(stage.pid).items():
            took[nice] += ticks - before.get(thread, (nice, 0))[1]
        assert took.most_common(1)[0][0] == niceness


async def test_speakers_are_refused_and_files_wait_when_every_slot_is_taken(
    model: PipelineTranscriptionModel,
) -> None:
    refused = sum(model.admission.refused.values())
    async with AsyncExitStack() as speakers:
        await speakers.enter_async_context(model.run(FILE))
        for _ in range(SLOTS - 1):
            await speakers.enter_async_context(model.run(LIVE))
        with pytest.raises(Overloaded, match="all 4 slots are taken"):
            model.check_room()
        with pytest.raises(Overloaded):
            async with model.run(LIVE):
                pass
        gives_up, waits = [asyncio.create_task(transcribe(model, QUIET, FILE)) for _ in range(2)]
        await until_waiting(model, 2)
        gives_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gives_up
        await until_waiting(model, 1)
    async with asyncio.timeout(DEADLINE_S):
        await waits
    assert sum(model.admission.refused.values()) == refused + 2
    assert model.admission.waiting_batch == model.admission.running == 0


async def test_a_window_whose_process_dies_fails_and_the_next_one_does_not(
    model: PipelineTranscriptionModel,
) -> None:
    (stage,) = model.orchestrator.stages.values()
    async with model.run(LIVE) as window, asyncio.timeout(DEADLINE_S):
        reading = asyncio.create_task(read_partials(window))
        await window.feed(QUIET)
        assert stage.pid is not None
        os.kill(stage.pid, signal.SIGKILL)
        with pytest.raises(StageDied):
            await reading
        with pytest.raises(StageDied):
            await window.finish()
    await model.orchestrator.wait_until_ready(DEADLINE_S)
    assert (await transcribe(model, spoken_sentences()[0].sound)).text
