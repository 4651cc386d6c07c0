"""Utterances on their way to a model: what it gets and when, partial words, and what is freed."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "api"))

from fake_service import eventually
from fake_transcription import FakeTranscriptionModel, expected_transcript

from cantata.contract.data.errors import RequestFailed
from cantata.contract.data.transcripts import SPEECH_RATE, Transcript, TranscriptionRequest
from cantata.speech_input.model_transcriber import ModelTranscriber, RecognitionLoad
from cantata.speech_input.sound import Heard
from cantata.speech_input.transcription import HeardPiece, UtteranceOptions
from cantata.speech_input.vad import WINDOW

SECOND = SPEECH_RATE // WINDOW
"""Windows of nearly a second."""
REQUEST = TranscriptionRequest(language="en")


class Loud:
    """Implements `SpeechJudge`: what is not zero is speech."""

    def compute_probability(self, window: Heard) -> float:
        return float(np.any(window))


class Spoken:
    """What a speaker says, as far as a test has let it; and what was reported of it."""

    def __init__(self, model: FakeTranscriptionModel, load: RecognitionLoad | None = None) -> None:
        self.load = load or RecognitionLoad()
        self.transcriber = ModelTranscriber(model, self.load, Loud)
        self.reports: list[tuple[str, bool]] = []
        self._queue: asyncio.Queue[HeardPiece | None] = asyncio.Queue()

    def say(self, windows: int, *, loud: bool = True) -> None:
        for _ in range(windows):
            sound = np.full(WINDOW, 1000 * loud, np.int16)
            self._queue.put_nowait(HeardPiece(sound, float(loud)))

    def end(self) -> None:
        self._queue.put_nowait(None)

    async def run(self, *, partials: bool = True) -> Transcript:
        options = UtteranceOptions(REQUEST, partials=partials)
        return await self.transcriber.transcribe(options, self._pieces(), self._report)

    async def taken(self) -> None:
        """Until the transcriber has taken all that was said."""
        await eventually(self._queue.empty)
        await asyncio.sleep(0)

    def _report(self, transcript: Transcript, is_last: bool) -> None:
        self.reports.append((transcript.text, is_last))

    async def _pieces(self) -> AsyncIterator[HeardPiece]:
        while (piece := await self._queue.get()) is not None:
            yield piece


def words(seconds: float) -> str:
    return expected_transcript(seconds, REQUEST).text


async def test_the_words_are_asked_for_in_the_pause_and_nothing_follows_them() -> None:
    model = FakeTranscriptionModel("ears")
    spoken = Spoken(model)
    spoken.say(2 * SECOND)
    spoken.say(15, loud=False)
    spoken.end()
    found = await spoken.run(partials=False)
    (sound,) = model.counts.sounds
    assert len(sound) == (2 * SECOND + 3) * WINDOW, "the first windows of the silence"
    assert model.counts.asked == [len(sound) / SPEECH_RATE]
    assert found.text == words(len(sound) / SPEECH_RATE)
    assert np.abs(sound).max() == np.float32(1000 / 32768)
    assert model.counts.requests == [REQUEST]
    assert (model.counts.open, spoken.load.waiting) == (0, {})


async def test_partial_words_come_about_once_a_second() -> None:
    model = FakeTranscriptionModel("ears")
    spoken = Spoken(model)
    running = asyncio.create_task(spoken.run())
    for _ in range(4):
        spoken.say(SECOND)
        await spoken.taken()
        await eventually(lambda: spoken.load.has_time)
    spoken.end()
    found = await running
    gaps = np.diff([0.0, *model.counts.asked])
    assert len(gaps) == 3
    assert np.all((gaps >= 0.95) & (gaps <= 1.1)), gaps
    assert spoken.reports[-1] == (found.text, True)
    assert [is_last for _, is_last in spoken.reports] == [False] * 3 + [True]


async def test_no_partial_words_are_asked_for_while_any_are_awaited() -> None:
    model = FakeTranscriptionModel("ears")
    model.behaviour.may_know = asyncio.Event()
    load = RecognitionLoad()
    first, second = Spoken(model, load), Spoken(model, load)
    running = [asyncio.create_task(one.run()) for one in (first, second)]
    for _ in range(3):
        for one in (first, second):
            one.say(SECOND)
            await one.taken()
    assert len(model.counts.asked) == 1
    model.behaviour.may_know.set()
    await eventually(lambda: load.has_time)
    second.say(SECOND)
    await second.taken()
    assert len(model.counts.asked) == 2
    for one in (first, second):
        one.end()
    await asyncio.gather(*running)
    assert load.waiting == {}


async def test_on_a_slow_server_partial_words_are_rarer() -> None:
    model = FakeTranscriptionModel("ears")
    spoken = Spoken(model)
    spoken.load.took_s = 0.9
    assert spoken.load.get_partial_interval(1.0) == 2.7 * SPEECH_RATE
    running = asyncio.create_task(spoken.run())
    spoken.say(round(2.6 * SECOND))
    await spoken.taken()
    assert model.counts.asked == []
    spoken.say(SECOND)
    await eventually(lambda: model.counts.asked)
    spoken.end()
    await running
    assert spoken.load.took_s < 0.9


async def test_partial_words_of_all_together_leave_time_for_whole_turns() -> None:
    model = FakeTranscriptionModel("ears")
    load = RecognitionLoad()
    first, second = Spoken(model, load), Spoken(model, load)
    running = [asyncio.create_task(one.run()) for one in (first, second)]
    first.say(SECOND + 2)
    await eventually(lambda: model.counts.asked and not load.waiting)
    load.partials_from = time.monotonic() + 1000
    second.say(2 * SECOND)
    await second.taken()
    assert len(model.counts.asked) == 1
    load.partials_from = 0.0
    second.say(1)
    await eventually(lambda: len(model.counts.asked) == 2)
    for one in (first, second):
        one.end()
    await asyncio.gather(*running)
    assert load.partials_from > 0


async def test_a_transcript_that_was_ready_is_no_sign_of_speed() -> None:
    model = FakeTranscriptionModel("ears")
    spoken = Spoken(model)
    running = asyncio.create_task(spoken.run(partials=False))
    spoken.say(SECOND)
    spoken.say(5, loud=False)
    await eventually(lambda: model.counts.asked and not spoken.load.waiting)
    spoken.load.took_s = 0.9
    spoken.end()
    await running
    assert spoken.load.took_s == 0.9


async def test_a_long_utterance_is_joined_from_windows() -> None:
    model = FakeTranscriptionModel("ears", max_window_s=4.0)
    spoken = Spoken(model)
    for _ in range(3):
        spoken.say(3 * SECOND)
        spoken.say(2 * SECOND, loud=False)
    spoken.end()
    found = await spoken.run()
    assert len(model.counts.sounds) == 3
    lengths = [len(sound) / SPEECH_RATE for sound in model.counts.sounds]
    assert found.text == " ".join(map(words, lengths))
    assert found.seconds == pytest.approx(sum(lengths))
    assert model.counts.max_open == 1
    assert [text for text, is_last in spoken.reports if is_last] == list(map(words, lengths))


async def test_windows_of_a_language_without_spaces_are_joined_without_them() -> None:
    model = FakeTranscriptionModel("ears", max_window_s=4.0)
    model.behaviour.text = "\u4eca\u5929\u4e0b\u96e8\u3002"
    spoken = Spoken(model)
    spoken.say(10 * SECOND)
    spoken.end()
    found = await spoken.run(partials=False)
    assert len(model.counts.sounds) > 1
    assert found.text == model.behaviour.text * len(model.counts.sounds)


async def test_speech_without_pauses_is_cut_and_nothing_is_lost() -> None:
    model = FakeTranscriptionModel("ears", max_window_s=4.0)
    spoken = Spoken(model)
    spoken.say(10 * SECOND)
    spoken.end()
    found = await spoken.run(partials=False)
    lengths = [len(sound) for sound in model.counts.sounds]
    assert max(lengths) <= 4 * SPEECH_RATE
    assert sum(lengths) == 10 * SECOND * WINDOW
    assert found.text == " ".join(words(length / SPEECH_RATE) for length in lengths)
    assert (model.counts.open, model.counts.max_open) == (0, 1)


async def test_a_model_of_whole_windows_begins_in_the_pause() -> None:
    model = FakeTranscriptionModel("ears", has_partials=False)
    spoken = Spoken(model)
    running = asyncio.create_task(spoken.run())
    spoken.say(SECOND)
    spoken.say(10, loud=False)
    await eventually(lambda: model.counts.finished == 1)
    spoken.say(SECOND)
    spoken.say(10, loud=False)
    await eventually(lambda: model.counts.finished == 2)
    spoken.end()
    found = await running
    assert model.counts.finished == 2, "the end asks for nothing more"
    assert found.text == words(len(model.counts.sounds[1]) / SPEECH_RATE)
    assert len(model.counts.sounds[1]) == (2 * SECOND + 13) * WINDOW


def unjudged(parts: Iterable[Heard]) -> AsyncIterator[HeardPiece]:
    async def pieces() -> AsyncIterator[HeardPiece]:
        for sound in parts:
            yield HeardPiece(sound)

    return pieces()


async def test_sound_without_speech_is_not_recognized() -> None:
    """A recognizer makes up words for it."""
    model = FakeTranscriptionModel("ears")
    transcriber = Spoken(model).transcriber
    options = UtteranceOptions(REQUEST)
    silence, speech = np.zeros(SPEECH_RATE, np.int16), np.full(SPEECH_RATE, 9, np.int16)
    found = await transcriber.transcribe(options, unjudged([silence, silence]), lambda *_: None)
    assert (found.text, model.counts.requests) == ("", [])
    whole = [silence, silence, speech, silence]
    found = await transcriber.transcribe(options, unjudged(whole), lambda *_: None)
    (sound,) = model.counts.sounds
    assert abs(len(sound) / SPEECH_RATE - 1.4) < 0.05
    assert found.text == words(len(sound) / SPEECH_RATE)


async def test_a_failure_is_told_and_frees_the_window() -> None:
    model = FakeTranscriptionModel("ears")
    model.behaviour.error = RequestFailed("the speech could not be recognized")
    spoken = Spoken(model)
    spoken.say(SECOND)
    spoken.end()
    with pytest.raises(RequestFailed):
        await spoken.run()
    assert (model.counts.open, spoken.load.waiting) == (0, {})


@pytest.mark.parametrize("has_partials", [True, False])
async def test_a_cancelled_one_is_freed(has_partials: bool) -> None:
    model = FakeTranscriptionModel("ears", has_partials=has_partials)
    model.behaviour.may_finish = model.behaviour.may_know = asyncio.Event()
    spoken = Spoken(model)
    running = asyncio.create_task(spoken.run())
    spoken.say(SECOND)
    spoken.say(5, loud=False)
    await eventually(lambda: model.counts.open == 1 and spoken.load.waiting)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()
    assert (model.counts.open, spoken.load.waiting) == (0, {})
