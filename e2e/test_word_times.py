"""Word times against those that an aligner finds in the sound."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from cantata.client import connect
from cantata.contract.service import SpokenWord
from cantata_bench.asr import word_error_rate

from .conftest import KNOWN
from .judges.speech import align, spoken_words, transcribe
from .judges.waveform import Samples, faults, pauses
from .server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.level1]

PAUSE_S = 0.9
TEXT = (
    "The children walked home along the river after school. Have you read the latest book? "
    f"[pause {PAUSE_S:g}s] Close the window, please. "
    "My neighbor grows tomatoes and beans in her garden."
)
CLOSE_S = 0.08
MIN_CLOSE = 0.92
"""Share of starts and ends that are so close; found: 0.96 and more, 0.99 without pauses."""
MAX_S = 0.18
WORST_WER = 0.35
"""Highest word error rate of one text; in another order, more than half of its words are wrong."""
MAX_BIAS_S = 0.025
"""The median difference; found: 3 ms."""


@pytest.fixture(scope="module")
def model() -> str:
    return KNOWN


@dataclass(frozen=True)
class Spoken:
    """One text with the times of its words."""

    sound: Samples
    rate: int
    words: list[SpokenWord]


def speak(server: Server, voice: str) -> Spoken:
    async def run() -> Spoken:
        async with connect(server.url, voice=voice, timestamps=True) as session:
            pcm = [samples async for samples in session.speak(TEXT)]
            sound = np.concatenate(pcm)[:, 0].astype(np.float32) / np.float32(32768)
            return Spoken(sound, session.sample_rate, session.words)

    return asyncio.run(run())


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("number", range(4))
def test_words_are_where_the_aligner_finds_them(
    server: Server, number: int, figures: Callable[..., None]
) -> None:
    voice = server.get("/v1/audio/voices").json()["voices"][number]["id"]
    spoken = speak(server, voice)
    assert faults(spoken.sound, spoken.rate) == []
    said = re.sub(r"\[.*?\]", "", TEXT)
    found = align(said, spoken.sound, spoken.rate)
    named = [TEXT[word.text_start : word.text_end].lower() for word in spoken.words]
    assert named == spoken_words(said)
    off = np.array(
        [
            time
            for word, heard in zip(spoken.words, found, strict=True)
            for time in (word.start_s - heard.start_s, word.end_s - heard.end_s)
        ]
    )
    close = float((np.abs(off) <= CLOSE_S).mean())
    figures(
        test="word times",
        voice=voice,
        median=f"{1000 * np.median(off):.0f} ms",
        furthest=f"{1000 * np.abs(off).max():.0f} ms",
        within=f"{close:.0%} within {1000 * CLOSE_S:.0f} ms",
    )
    bias_s = float(np.median(off))
    assert abs(bias_s) <= MAX_BIAS_S, f"word times are {bias_s:.2f} s late"
    assert close >= MIN_CLOSE, f"only {close:.0%} of the word times are right"
    assert np.abs(off).max() <= MAX_S, f"a word time is {np.abs(off).max():.2f} s wrong"
    assert_the_pause(spoken)
    # An aligner bends any sound to its text: the words must be there, in this order.
    assert word_error_rate([said], [transcribe(spoken.sound, spoken.rate)]) <= WORST_WER


def assert_the_pause(spoken: Spoken) -> None:
    """Sound resumes with the word after it, and it is as long as was asked."""
    after = next(one for one in spoken.words if TEXT[one.text_start :].startswith("Close"))
    start, end = max(
        pauses(spoken.sound, spoken.rate, PAUSE_S / 2), key=lambda one: one[1] - one[0]
    )
    assert abs(after.start_s - end) <= CLOSE_S
    assert PAUSE_S - 0.05 <= end - start <= PAUSE_S + 0.5, f"a pause of {end - start:.2f} s"
