"""A stream played at another pace: its length, pitch and place, whatever pieces it comes in."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from cantata.audio.stretch import TimeStretch
from cantata.contract.data.chunks import Chunk, Milestone, Pcm, WordTiming
from cantata.contract.data.request import PipelineRequest, TextSpan
from cantata.contract.process.messages import StageCapacity
from cantata.contract.service import SpeechChunk
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.segments import TextSegment
from cantata.pipeline.speech_pump import SpeechPump
from cantata.pipeline.time_stretch import AT_ONCE_S, FIRST_S, stretch_time
from cantata.text import Passage
from stage_chunks import pcm_chunk

Samples = NDArray[np.float32]
RATE = 24_000
FRAME = 1920
FACTORS = (0.25, 0.5, 0.7, 1.01, 1.5, 2.0, 3.1, 4.0)


def stretch(samples: Samples, factor: float, cuts: list[int] | None = None) -> Samples:
    stream = TimeStretch(factor, RATE, samples.shape[1])
    pieces = np.split(samples, cuts if cuts is not None else range(FRAME, len(samples), FRAME))
    return np.concatenate([*[stream.feed(piece) for piece in pieces], stream.finish()])


def noise(samples: int, seed: int = 0) -> Samples:
    return np.random.default_rng(seed).normal(0, 0.2, (samples, 1)).astype(np.float32)


def tone(hertz: float, seconds: float) -> Samples:
    times_s = np.arange(round(RATE * seconds))[:, None] / RATE
    return (0.5 * np.sin(2 * np.pi * hertz * times_s)).astype("f4")


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("length", [0, 1, 2, 100, 239, 1000, 30_011])
def test_it_is_as_long_as_was_asked_for(factor: float, length: int) -> None:
    assert len(stretch(noise(length), factor)) == round(length / factor)


@pytest.mark.parametrize("factor", FACTORS)
def test_the_pieces_it_comes_in_make_no_difference(factor: float) -> None:
    samples = noise(12_000)
    whole = stretch(samples, factor, cuts=[])
    for seed in range(3):
        cuts = np.random.default_rng(seed).integers(0, len(samples), 40)
        np.testing.assert_array_equal(stretch(samples, factor, sorted(cuts.tolist())), whole)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("hertz", [90, 220, 1000])
def test_its_pitch_and_level_stay(factor: float, hertz: float) -> None:
    heard = stretch(tone(hertz, 3.0), factor)[:, 0]
    middle = heard[len(heard) // 4 : -len(heard) // 4]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle)), 1 << 18))
    assert np.argmax(spectrum) * RATE / (1 << 18) == pytest.approx(hertz, rel=0.02)
    assert np.sqrt(np.mean(middle**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.1)


@pytest.mark.parametrize("factor", FACTORS)
def test_what_is_said_keeps_its_place(factor: float) -> None:
    """The middle of a burst of sound is heard at its time divided by the factor."""
    middles_s = (0.3, 0.8, 1.3, 1.8)
    samples = np.zeros((RATE * 2, 1), np.float32)
    for middle_s in middles_s:
        begin = round((middle_s - 0.05) * RATE)
        samples[begin : begin + RATE // 10] = tone(300, 0.1)
    energy = stretch(samples, factor)[:, 0] ** 2
    times_s = np.arange(len(energy)) / RATE
    for middle_s in middles_s:
        near = np.abs(times_s * factor - middle_s) < 0.25
        centre_s = np.sum(times_s[near] * energy[near]) / np.sum(energy[near])
        assert centre_s == pytest.approx(middle_s / factor, abs=0.02 / min(factor, 1))


@pytest.mark.parametrize("factor", FACTORS)
def test_silence_stays_silence_and_a_constant_stays_one(factor: float) -> None:
    assert not stretch(np.zeros((RATE, 1), np.float32), factor).any()
    constant = stretch(np.full((RATE, 1), 0.25, np.float32), factor)
    inner = constant[len(constant) // 4 : -len(constant) // 4]
    np.testing.assert_allclose(inner, 0.25, atol=1e-3)


def test_the_last_samples_are_heard() -> None:
    """A filter that is not flushed would swallow some dozen milliseconds."""
    samples = np.concatenate([np.zeros((RATE, 1), np.float32), tone(300, 0.2)])
    for factor in FACTORS:
        heard = stretch(samples, factor)
        end = heard[-round(0.04 * RATE / factor) :]
        assert np.abs(end).max() > 0.2, factor


@pytest.mark.parametrize("channels", [2, 3])
@pytest.mark.parametrize("factor", [0.3, 0.7, 2.5])
def test_channels_stay_together(channels: int, factor: float) -> None:
    gains = np.arange(1, channels + 1, dtype=np.float32) / channels
    heard = stretch((noise(RATE) * gains).astype(np.float32), factor)
    assert heard.shape == (round(RATE / factor), channels)
    np.testing.assert_allclose(heard, heard[:, -1:] * gains, atol=1e-5)


def test_what_is_no_number_spoils_nothing_else() -> None:
    samples = tone(220, 1.0)
    samples[5000] = np.nan
    assert np.isfinite(stretch(samples, 1.5)).all()


def collect_chunks(samples: Samples, lengths: list[int]) -> list[Chunk[Pcm]]:
    ends = list(itertools.accumulate(lengths))
    assert ends[-1] == len(samples)
    words = [(WordTiming(i, end / RATE - 0.02, end / RATE),) for i, end in enumerate(ends)]
    told = [(Milestone("decoder", 1.0),), *[()] * (len(ends) - 1)]
    pieces = np.split(samples, ends[:-1])
    parts = enumerate(zip(pieces, words, told, strict=True))
    return [pcm_chunk("r", i, piece, i == len(ends) - 1, w, m) for i, (piece, w, m) in parts]


OUTPUT = StageCapacity(1, 0.08, RATE, 1)


def play(chunks: list[Chunk[Pcm]], factor: float) -> list[Chunk[Pcm]]:
    return list(stretch_time(chunks, factor, OUTPUT))


async def pump(chunks: list[Chunk[Pcm]], factor: float) -> list[SpeechChunk]:
    """An utterance whose pipeline makes these chunks."""

    async def arriving() -> AsyncIterator[Chunk[Pcm]]:
        for chunk in chunks:
            await asyncio.sleep(0)
            yield chunk

    spans = tuple(TextSpan(index, index + 1) for index in range(len(chunks)))
    request = PipelineRequest("r", {}, stretch=factor, words=spans)
    numbers = range(len(chunks) + 1)
    passage = Passage("x" * len(chunks), numbers[:-1], numbers[1:])
    fake = SimpleNamespace(sound_capacity=OUTPUT, open=nullcontext, sound=lambda opened: arriving())
    spoken = SpeechPump(cast(Orchestrator, fake)).run([TextSegment(request, passage)])
    return [chunk async for chunk in spoken]


@pytest.mark.parametrize("factor", [0.25, 0.7, 2.0, 4.0])
def test_words_come_with_their_sound_or_before_it_at_their_new_time(factor: float) -> None:
    chunks = collect_chunks(noise(20 * FRAME), [FRAME] * 20)
    made = 0
    told: list[WordTiming] = []
    for chunk in play(chunks, factor):
        made += chunk.payload.units
        told += chunk.payload.words
        expected = [w for c in chunks for w in c.payload.words if w.start_s / factor < made / RATE]
        assert {w.index for w in told} >= {w.index for w in expected}
    assert made == round(20 * FRAME / factor)
    assert [word.index for word in told] == list(range(20))
    for word in told:
        end_s = (word.index + 1) * 0.08
        assert (word.start_s, word.end_s) == pytest.approx(
            ((end_s - 0.02) / factor, end_s / factor)
        )


@pytest.mark.parametrize("factor", [0.25, 1.5, 4.0])
def test_milestones_come_with_the_first_sound_which_is_long_enough(factor: float) -> None:
    played = play(collect_chunks(noise(20 * FRAME), [FRAME] * 20), factor)
    assert [bool(chunk.milestones) for chunk in played] == [True] + [False] * (len(played) - 1)
    assert played[0].payload.units >= FIRST_S * RATE
    assert all(chunk.payload.units for chunk in played[:-1])


@pytest.mark.parametrize("factor", [0.25, 1.5, 4.0])
def test_long_chunks_and_short_ones_make_the_same_samples(factor: float) -> None:
    samples = noise(20 * FRAME)
    lengths = [[FRAME] * 20, [20 * FRAME], [5 * FRAME, FRAME, 14 * FRAME]]
    assert 20 * FRAME / factor > 2 * AT_ONCE_S * RATE
    one, *others = [play(collect_chunks(samples, cut), factor) for cut in lengths]
    for other in others:
        np.testing.assert_array_equal(
            np.concatenate([chunk.payload.samples for chunk in other]),
            np.concatenate([chunk.payload.samples for chunk in one]),
        )


async def test_others_have_their_turn_while_a_long_chunk_is_stretched() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(others())
    await pump(collect_chunks(noise(100 * FRAME), [100 * FRAME]), 2.0)
    other.cancel()
    assert turns >= 100 * FRAME / 2.0 / (AT_ONCE_S * RATE)


def test_at_its_own_pace_nothing_is_touched() -> None:
    chunks = collect_chunks(noise(3 * FRAME), [FRAME] * 3)
    played = play(chunks, 1.0)
    assert all(one is other for one, other in zip(played, chunks, strict=True))


def test_sound_shorter_than_the_first_chunk_is_heard_all_the_same() -> None:
    (only,) = play(collect_chunks(noise(100), [100]), 2.0)
    assert (only.payload.units, len(only.payload.words), len(only.milestones)) == (50, 1, 1)
    assert play([], 2.0) == []


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
async def test_an_utterance_is_what_its_stretched_chunks_are(factor: float) -> None:
    chunks = collect_chunks(noise(6 * FRAME), [FRAME, 0, 2 * FRAME, 3 * FRAME])
    played, spoken = play(chunks, factor), await pump(chunks, factor)
    np.testing.assert_array_equal(
        np.concatenate([chunk.samples for chunk in spoken]),
        np.concatenate([chunk.payload.samples for chunk in played]),
    )
    assert [word.end_s for chunk in spoken for word in chunk.words] == [
        word.end_s for chunk in played for word in chunk.payload.words
    ]
    assert all(len(chunk.samples) or chunk.words for chunk in spoken)
