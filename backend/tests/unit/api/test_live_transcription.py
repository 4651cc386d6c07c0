"""A stream of sound that is written down while it arrives: parts, ends, times, failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import numpy as np
import pytest
from fake_service import eventually

from cantata.api.transcription import live
from cantata.api.transcription.live import LiveTranscription
from cantata.api.transcription.live_events import (
    LiveEvent,
    LiveFailure,
    LiveOptions,
    LiveTranscript,
    SpeechHeard,
    WordsEnded,
)
from cantata.contract.data.errors import RequestFailed
from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.transcription import HeardPiece, Report, UtteranceOptions
from cantata.speech_input.vad import WINDOW

WINDOWS_PER_S = HEARD_RATE / WINDOW


class LoudnessJudge:
    """Takes for speech what is not zero."""

    def compute_probability(self, window: Heard) -> float:
        return float(np.any(window))


class EchoingTranscriber:
    """Says how many windows it has heard; a partial transcript for each ten."""

    def __init__(self) -> None:
        self.may_take = asyncio.Event()
        self.may_take.set()
        self.errors: list[RequestFailed] = []

    async def transcribe(
        self, options: UtteranceOptions, pieces: AsyncIterator[HeardPiece], report: Report
    ) -> Transcript:
        count = 0
        async for _ in pieces:
            await self.may_take.wait()
            if self.errors:
                raise self.errors.pop()
            count += 1
            if count % 10 == 0:
                report(Transcript(f"{count}", seconds=count / WINDOWS_PER_S), False)
        said = Transcript(f"{count}", seconds=count / WINDOWS_PER_S)
        report(said, True)
        return said


def sound(*parts: tuple[str, float]) -> Heard:
    """Speech and silence of so many seconds."""
    return np.concatenate(
        [np.full(round(s * HEARD_RATE), kind == "speech", np.int16) for kind, s in parts]
    )


@asynccontextmanager
async def following(
    options: LiveOptions, transcriber: EchoingTranscriber | None = None
) -> AsyncIterator[tuple[LiveTranscription, list[LiveEvent]]]:
    events: list[LiveEvent] = []
    one = LiveTranscription(
        transcriber or EchoingTranscriber(), LoudnessJudge(), options, events.append
    )
    running = asyncio.create_task(one.run(lambda: None))
    try:
        yield one, events
        one.end()
        async with asyncio.timeout(30):
            await running
    finally:
        one.close()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def finals(events: Sequence[LiveEvent]) -> list[LiveTranscript]:
    return [one for one in events if isinstance(one, LiveTranscript) and one.is_final]


def options(
    endpointing_s: float | None = None, end_s: float | None = None, *, partials: bool = False
) -> LiveOptions:
    return LiveOptions(TranscriptionRequest(), endpointing_s, end_s, partials=partials)


async def test_utterances_end_with_silence_and_are_placed_in_the_stream() -> None:
    heard = sound(("silence", 1.0), ("speech", 2.0), ("silence", 2.0), ("speech", 1.0))
    async with following(options(0.3)) as (one, events):
        # Pieces may end anywhere.
        for start in range(0, len(heard), 777):
            await one.feed(heard[start : start + 777])
    first, second = finals(events)
    assert first.start_s == pytest.approx(1.0, abs=0.4)
    assert second.start_s == pytest.approx(5.0, abs=0.4)
    assert first.ends_utterance
    assert second.ends_utterance
    assert first.start_s + first.transcript.seconds == pytest.approx(3.35, abs=0.1)
    began = [event.at_s for event in events if isinstance(event, SpeechHeard)]
    assert began == pytest.approx([1.0, 5.0], abs=0.05)
    assert one.seconds == pytest.approx(6.0, abs=0.05)


async def test_partial_transcripts_come_if_they_are_wanted() -> None:
    heard = sound(("speech", 2.0), ("silence", 1.0))
    for partials in (False, True):
        async with following(options(0.3, partials=partials)) as (one, events):
            await one.feed(heard)
        said = [event for event in events if isinstance(event, LiveTranscript)]
        assert [event.is_final for event in said][-1]
        assert (len(said) > 3) == partials
        assert len(finals(events)) == 1


async def test_long_silence_is_reported_after_the_words() -> None:
    async with following(options(0.3, 1.0)) as (one, events):
        await one.feed(sound(("speech", 1.0), ("silence", 1.5), ("speech", 1.0), ("silence", 0.8)))
    kinds = [type(event) for event in events]
    assert kinds == [SpeechHeard, LiveTranscript, WordsEnded, SpeechHeard, LiveTranscript]
    assert isinstance(events[2], WordsEnded)
    assert events[2].last_word_end_s == pytest.approx(1.35, abs=0.1)


async def test_an_end_that_comes_after_the_words_has_its_own_report() -> None:
    """A recognizer gets no pause longer than 0.6 s after four seconds of speech."""
    async with following(options(1.2)) as (one, events):
        await one.feed(sound(("speech", 5.0), ("silence", 1.0)))
        await eventually(lambda: len(finals(events)) == 1)
        assert not finals(events)[0].ends_utterance
        await one.feed(sound(("silence", 1.0)))
    words, end = finals(events)
    assert words.transcript.text
    assert (end.transcript.text, end.ends_utterance) == ("", True)


async def test_without_endpointing_only_the_end_ends() -> None:
    async with following(options()) as (one, events):
        await one.feed(sound(("speech", 1.0), ("silence", 5.0), ("speech", 1.0), ("silence", 1.0)))
    assert [event.ends_utterance for event in finals(events)] == [False, True]


async def test_a_flush_answers_at_once_and_always() -> None:
    async with following(options(0.3)) as (one, events):
        one.flush()
        await one.feed(sound(("speech", 1.0)))
        one.flush()
        await eventually(lambda: len(finals(events)) == 2)
        nothing, words = finals(events)
        assert nothing.answers_flush
        assert words.answers_flush
        assert (nothing.transcript.text, bool(words.transcript.text)) == ("", True)
        await one.feed(sound(("speech", 1.0), ("silence", 1.0)))
    assert len(finals(events)) == 3
    assert finals(events)[2].start_s >= 1.0 - WINDOW / HEARD_RATE


async def test_a_failure_loses_its_part_alone() -> None:
    transcriber = EchoingTranscriber()
    transcriber.errors.append(RequestFailed("it broke"))
    async with following(options(0.3), transcriber) as (one, events):
        await one.feed(sound(("speech", 2.0)))
        await eventually(lambda: any(isinstance(event, LiveFailure) for event in events))
        assert not finals(events)
        await one.feed(sound(("speech", 1.0), ("silence", 1.0), ("speech", 1.0)))
    lost, words = finals(events)
    assert (lost.transcript.text, lost.ends_utterance) == ("", True)
    assert words.transcript.text


async def test_a_sender_that_stops_in_mid_speech_has_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "SOUND_GAP_S", 0.05)
    async with following(options(0.3, 0.04)) as (one, events):
        await one.feed(sound(("speech", 1.0)))
        await eventually(lambda: any(isinstance(event, WordsEnded) for event in events))
        assert finals(events)[0].ends_utterance
        assert not one.is_busy


async def test_sound_waits_for_a_recognizer_that_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_AHEAD_S", 1.0)
    transcriber = EchoingTranscriber()
    transcriber.may_take.clear()
    async with following(options(0.3), transcriber) as (one, events):
        feeding = asyncio.create_task(one.feed(sound(("speech", 5.0), ("silence", 1.0))))
        await eventually(lambda: one.seconds > 1.0)
        for _ in range(50):
            await asyncio.sleep(0)
        assert one.seconds < 6
        assert not feeding.done()
        transcriber.may_take.set()
        await feeding
    assert len(finals(events)) == 1
