"""A crowd of short requests: every one ends, and says its own words with its own samples."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from websockets.exceptions import WebSocketException

from cantata.client import ServerError, connect, stream_speech
from tiers import scaled

from .conftest import KNOWN
from .continuity import first_fault
from .judges.digits import DIGITS, transcribe
from .server import STOP_DEADLINE_S, Server, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.level3, pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def model() -> str:
    """The judge has learnt to hear its voices."""
    return KNOWN


Pcm = NDArray[np.int16]

REQUESTS = scaled(250, 500)
TEXTS = 32
"""Different ones, each alone first; a recognizer must hear their words."""
AT_A_TIME = 16
"""Half of them over HTTP, half over WebSockets."""
STILL_S = 30.0
"""If no request ends for so long, those that are open never will."""
RETRY_S = 0.2


@dataclass(frozen=True)
class Asked:
    """Three digits in a voice."""

    digits: tuple[str, ...]
    voice: str

    @property
    def text(self) -> str:
        return f"{' '.join(self.digits).capitalize()}."


@dataclass
class Crowd:
    """Requests in order, some at a time, and what was heard of each."""

    url: str
    requests: Sequence[Asked]
    heard: dict[int, Pcm] = field(default_factory=dict)
    took_s: dict[int, float] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)
    refusals: int = 0
    last_end: float = 0.0

    async def run(self) -> None:
        """Returns when all have ended, or none has ended for `STILL_S`."""
        numbers = iter(range(len(self.requests)))
        self.last_end = time.monotonic()
        listeners = [
            asyncio.create_task(self._listen(numbers, over_http=n % 2 == 0))
            for n in range(AT_A_TIME)
        ]
        try:
            while not all(one.done() for one in listeners):
                await asyncio.wait(listeners, timeout=1.0)
                if time.monotonic() - self.last_end > STILL_S:
                    return
        finally:
            for one in listeners:
                one.cancel()
            await asyncio.gather(*listeners, return_exceptions=True)

    async def _listen(self, numbers: Iterator[int], *, over_http: bool) -> None:
        for number in numbers:
            self.open.add(number)
            began = time.monotonic()
            try:
                self.heard[number] = await self._admitted(number, over_http=over_http)
            except (ServerError, OSError, httpx.HTTPError, WebSocketException) as error:
                self.errors[number] = f"{type(error).__name__}: {error}"
            self.last_end = time.monotonic()
            self.took_s[number] = self.last_end - began
            self.open.discard(number)

    async def _admitted(self, number: int, *, over_http: bool) -> Pcm:
        while True:
            try:
                return await self._speak(self.requests[number], over_http=over_http)
            except ServerError as error:
                if error.error_code != "rate_limit_exceeded":
                    raise
                self.refusals += 1
                await asyncio.sleep(RETRY_S)  # as a client does

    async def _speak(self, asked: Asked, *, over_http: bool) -> Pcm:
        pieces: list[Pcm] = []
        if over_http:
            async with stream_speech(self.url, asked.text, voice=asked.voice) as stream:
                pieces = [samples async for samples in stream.pcm]
        else:
            async with connect(self.url, voice=asked.voice) as session:
                pieces = [samples async for samples in session.speak(asked.text)]
        return np.concatenate(pieces)[:, 0] if pieces else np.zeros(0, dtype=np.int16)


@pytest.fixture(scope="module")
def alone(server: Server) -> Mapping[Asked, Pcm]:
    """Each text while nothing else is spoken."""
    voices = [voice["id"] for voice in server.get("/v1/audio/voices").json()["voices"]]
    chance = random.Random(7)
    found: dict[Asked, Pcm] = {}
    for number in range(TEXTS):
        asked = Asked(tuple(chance.sample(DIGITS, 3)), voices[number % len(voices)])
        answer = server.speech(input=asked.text, voice=asked.voice, response_format="pcm")
        assert answer.status_code == 200, answer.text
        found[asked] = np.frombuffer(answer.content, dtype="<i2")
    return found


@pytest.mark.thorough
def test_the_words_of_each_are_heard(server: Server, alone: Mapping[Asked, Pcm]) -> None:
    """So that whatever equals one of them says these words."""
    rate = server.get("/v1/audio/models").json()["models"][0]["sample_rate"]
    wrong = {
        asked.text: heard
        for asked, pcm in alone.items()
        if (heard := transcribe(pcm.astype(np.float32) / np.float32(32768), rate))
        != list(asked.digits)
    }
    assert len(wrong) <= len(alone) // 20, wrong


def test_in_a_crowd_every_request_ends_with_its_own_words(
    server: Server, alone: Mapping[Asked, Pcm], figures: Callable[..., None]
) -> None:
    chance = random.Random(11)
    kinds = list(alone)
    crowd = Crowd(server.url, [chance.choice(kinds) for _ in range(REQUESTS)])
    asyncio.run(crowd.run())
    slowest = max(crowd.took_s, key=crowd.took_s.__getitem__)
    figures(
        streams=f"{REQUESTS}, {AT_A_TIME} at a time",
        ended=len(crowd.took_s),
        refused=crowd.refusals,
        median=f"{np.median(list(crowd.took_s.values())):.2f} s",
        slowest=f"{crowd.took_s[slowest]:.2f} s: number {slowest}, {crowd.requests[slowest].text}",
    )
    unended = {number: crowd.requests[number].text for number in crowd.open}
    assert unended == {}, f"these never end: {unended}"
    assert crowd.errors == {}
    assert len(crowd.heard) == REQUESTS
    wrong = {
        number: f"{asked.text} in {asked.voice}: {fault}"
        for number, asked in enumerate(crowd.requests)
        if (fault := first_fault(crowd.heard[number], alone[asked])) is not None
    }
    assert not wrong, f"{len(wrong)} of {REQUESTS} say something else: {next(iter(wrong.values()))}"
    wait_until(server.is_idle, STOP_DEADLINE_S, "nothing is left of the crowd")
