"""Many streams at a time: each speaks its own text, with the samples that it has alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import soundfile

from cantata.client import Pcm, ServerError, Session, connect
from cantata_bench.asr import transcribe, word_error_rate

from .conftest import SHIPPED
from .continuity import first_fault
from .server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.level3]

TEXTS = (
    "The ferry leaves the harbour at seven in the evening.",
    "She put the letter back into the drawer.",
    "By noon the market was full of people and horses.",
    "There are eleven windows in this old house.",
    "He counted the steps to the top of the tower.",
    "We shall have heavy snow before the morning.",
    "The orchestra stopped, but nobody wanted to leave.",
    "Two brothers kept the mill beside the river.",
    "Please give the keys to our neighbour downstairs.",
    "A cold wind came down from the northern hills.",
    "Nothing in the garden had been touched since summer.",
    "They bought bread, cheese, apples and a bottle of water.",
    "This is a good question, but I have no answer.",
    "The doctor asked him how long he had been ill.",
    "Children were playing football behind the school.",
    "Could you tell me where the nearest library is?",
)
WORST_WER = 0.75


@dataclass
class Heard:
    """One stream. Times in seconds from the moment that its text was sent."""

    pieces: list[Pcm] = field(default_factory=list)
    first_at: float = 0.0
    last_at: float = 0.0
    refusals: int = 0

    @property
    def pcm(self) -> Pcm:
        return np.concatenate(self.pieces)[:, 0]


class Listeners:
    """Streams that start together. One that is rejected retries when another has ended."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self._sessions = sessions
        self._ended = asyncio.Condition()

    async def listen(self) -> list[Heard]:
        """All streams, each to its end."""
        listening = (self._listen(*one) for one in zip(self._sessions, TEXTS, strict=False))
        return list(await asyncio.gather(*listening))

    async def _listen(self, session: Session, text: str) -> Heard:
        heard = Heard()
        asked = time.perf_counter()
        while not heard.pieces:
            try:
                async for samples in session.speak(text):
                    heard.last_at = time.perf_counter() - asked
                    heard.first_at = heard.first_at or heard.last_at
                    heard.pieces.append(samples)
            except ServerError as error:
                if error.error_code != "rate_limit_exceeded":
                    raise
                heard.refusals += 1
                async with self._ended:
                    await self._ended.wait()
        async with self._ended:
            self._ended.notify_all()
        return heard


async def hear_together(server: Server, voices: Sequence[str], count: int) -> list[Heard]:
    """The first `count` texts at the same moment, each over a socket of its own."""
    async with AsyncExitStack() as stack:
        opening = (connect(server.url, voice=voices[i % len(voices)], seed=i) for i in range(count))
        sessions = [await stack.enter_async_context(session) for session in opening]
        return await Listeners(sessions).listen()


@cache
def collect_words(pcm: bytes, sample_rate: int) -> str:
    return transcribe(np.frombuffer(pcm, dtype="<i2"), sample_rate)


def max_at_a_time(streams: Sequence[Heard]) -> int:
    """How many streams were between their first and their last samples at the same moment."""
    return max(
        sum(other.first_at <= stream.first_at < other.last_at for other in streams)
        for stream in streams
    )


@pytest.fixture(scope="module")
def voices(server: Server) -> list[str]:
    """The default model's American ones: the judge of the words knows no other English."""
    known = server.get("/v1/audio/voices").json()["voices"]
    return [
        voice["id"]
        for voice in known
        if voice["model"] == SHIPPED and "British" not in voice["description"]
    ]


@pytest.fixture(scope="module")
def alone(server: Server, voices: Sequence[str]) -> list[Pcm]:
    """Each text spoken while nothing else is."""

    def sound(number: int) -> Pcm:
        answer = server.speech(
            input=TEXTS[number],
            voice=voices[number % len(voices)],
            seed=number,
            response_format="pcm",
        )
        assert answer.status_code == 200, answer.text
        return np.frombuffer(answer.content, dtype="<i2")

    return [sound(number) for number in range(len(TEXTS))]


@pytest.mark.thorough(every=3)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [16, 4, 8])
def test_no_stream_is_touched_by_another(
    server: Server,
    voices: Sequence[str],
    alone: Sequence[Pcm],
    figures: Callable[..., None],
    kept: Path,
    count: int,
) -> None:
    streams = asyncio.run(hear_together(server, voices, count))
    firsts_ms = sorted(1000 * stream.first_at for stream in streams)
    together = max_at_a_time(streams)
    figures(
        streams=count,
        **{
            "at a time": together,
            "first packet": f"{firsts_ms[0]:.0f} ms",
            "median": f"{firsts_ms[count // 2]:.0f} ms",
            "last": f"{firsts_ms[-1]:.0f} ms",
            "refused, then heard": sum(stream.refusals for stream in streams),
        },
    )
    assert together > 1
    rate = server.get("/v1/audio/models").json()["models"][0]["sample_rate"]
    for number, stream in enumerate(streams):
        soundfile.write(kept / f"{number}.wav", stream.pcm, rate)
        soundfile.write(kept / f"{number}-alone.wav", alone[number], rate)
    for number, stream in enumerate(streams):
        assert first_fault(stream.pcm, alone[number]) is None, TEXTS[number]
        heard = collect_words(stream.pcm.tobytes(), rate)
        errors = [word_error_rate([text], [heard]) for text in TEXTS]
        assert int(np.argmin(errors)) == number, f"{TEXTS[number]!r} was heard as {heard!r}"
        assert errors[number] <= WORST_WER, f"{TEXTS[number]!r} was heard as {heard!r}"
