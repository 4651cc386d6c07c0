"""Listeners: each requests a text, plays it at the pace of speech, and checks every sample."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import httpx

from cantata_bench.listener import Arrival, heard_at_s, underrun_s

_SAMPLE_RATE = 24_000
_RESERVE_S = 0.1
_SILENCE_S = 30.0
_RETRY_S = 1.0
TEXTS = (
    "Good morning. The kettle is on, and the door is open.",
    "The morning train was late again, so we walked along the river instead.",
    "Could you tell me where the nearest library is? I was told to turn left at the bridge.",
    "She opened the letter, read it twice, and put it back on the table without a word.",
    "A cold wind came down from the hills. It rattled the windows all night. Nobody slept.",
    "We bought bread, cheese, two apples and a bottle of water, and went home before noon.",
)


@dataclass(frozen=True, slots=True)
class Heard:
    """How one request ended."""

    began_s: float
    ended_s: float
    """When its last byte or its error arrived."""
    error: str
    """Empty: it was spoken to its end."""
    same_bits: bool
    """Whether the sound equals that of the same request without faults and other load."""
    stood_still_s: float
    """How long a player with 100 ms of reserve stalled."""


@dataclass(slots=True)
class Crowd:
    """This many listeners of one server.

    Args:
        url: of the server.
        voices: to choose from.
        seed: of texts and voices.
    """

    url: str
    voices: tuple[str, ...]
    seed: int
    heard: list[Heard] = field(default_factory=list)
    _expected: dict[tuple[str, str], bytes] = field(default_factory=dict)

    async def learn(self) -> None:
        """Receive every text alone, as the reference for later comparisons."""
        async with self._client() as http:
            for text in TEXTS:
                for voice in self.voices:
                    response = await http.post("/v1/audio/speech", json=_body(text, voice))
                    response.raise_for_status()
                    self._expected[text, voice] = response.content

    async def listen(self, number: int) -> None:
        """Run one listener after another, until cancelled."""
        dice = random.Random(f"{self.seed}:{number}")
        while True:
            async with self._client() as http:
                heard = await self._hear(http, dice.choice(TEXTS), dice.choice(self.voices))
            self.heard.append(heard)
            if heard.error:
                await asyncio.sleep(_RETRY_S)

    async def _hear(self, http: httpx.AsyncClient, text: str, voice: str) -> Heard:
        clock = asyncio.get_running_loop().time
        began_s = clock()
        arrivals: list[Arrival] = []
        sound, error = bytearray(), ""
        try:
            async with http.stream("POST", "/v1/audio/speech", json=_body(text, voice)) as answer:
                if answer.status_code != httpx.codes.OK:
                    error = str((await _whole(answer))["error"]["code"])
                else:
                    async for data in answer.aiter_bytes():
                        sound += data
                        arrivals.append((clock(), len(data) / 2 / _SAMPLE_RATE))
        except httpx.HTTPError as broken:
            error = type(broken).__name__
        ended_s = clock()
        expected = self._expected[text, voice]
        same = sound == expected if not error else expected.startswith(bytes(sound))
        still_s = underrun_s(arrivals, _RESERVE_S) if arrivals else 0.0
        if arrivals and not error:
            await asyncio.sleep(max(0.0, heard_at_s(arrivals) - clock()))
        return Heard(began_s, ended_s, error, same, still_s)

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, timeout=_SILENCE_S)


def _body(text: str, voice: str) -> dict[str, str]:
    return {"input": text, "voice": voice, "response_format": "pcm"}


async def _whole(answer: httpx.Response) -> dict[str, dict[str, str]]:
    await answer.aread()
    body: dict[str, dict[str, str]] = answer.json()
    return body
