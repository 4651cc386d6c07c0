"""The speech of the tests of /v1/realtime, and whether the answer to it is understood."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import httpx

from cantata_bench.asr import transcribe, word_error_rate

from .conftest import Address
from .listening import samples

RATE = 24_000
QUESTION = "The children walk home along the river after school."
LONG_QUESTION = "She went to the market to buy some bread and milk. " * 3
WORST_WER = 0.35
FRAME_S = 0.02
SERVER_VAD = {"type": "server_vad", "silence_duration_ms": 500}
"""Asked for by name: `semantic_vad`, the default of some clients, may doubt a synthetic voice."""


@dataclass
class Answer:
    """What a client got of one response."""

    sound: bytes = b""
    text: str = ""

    def assert_understood(self) -> None:
        """The server's rules repeat the question; a recognizer hears that in the answer."""
        assert self.text.startswith("You said: "), self.text
        question = self.text.removeprefix("You said: ")
        assert word_error_rate([QUESTION], [question]) <= WORST_WER, self.text
        heard = transcribe(samples(self.sound), RATE)
        assert word_error_rate([self.text], [heard]) <= WORST_WER, heard


@cache
def spoken(server: Address, text: str = QUESTION) -> bytes:
    """A question as PCM, in another voice than the answer's, with the silence that ends it."""
    body = {"input": text, "voice": "ben", "response_format": "pcm", "sample_rate": RATE}
    answer = httpx.post(f"{server.http}/v1/audio/speech", json=body, timeout=60)
    answer.raise_for_status()
    return bytes(RATE) + answer.content + bytes(2 * RATE)


def frames(sound: bytes) -> list[bytes]:
    """As a microphone gives them."""
    size = 2 * round(FRAME_S * RATE)
    return [sound[start : start + size] for start in range(0, len(sound), size)]
