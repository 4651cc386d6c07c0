"""A sentence that the server itself speaks, for clients that have it written down."""

from __future__ import annotations

from functools import cache

import httpx

from .conftest import Address
from .listening import SENTENCES

RATE = 16_000
FRAME_S = 0.05


@cache
def speak(server: Address, response_format: str = "wav", rate: int = RATE) -> bytes:
    """`SENTENCES` as a file, or as PCM with the second of silence that ends it."""
    body = {"input": SENTENCES, "response_format": response_format, "sample_rate": rate}
    answer = httpx.post(f"{server.http}/v1/audio/speech", json=body, timeout=60)
    answer.raise_for_status()
    return answer.content + bytes(2 * rate) if response_format == "pcm" else answer.content


def frames(server: Address) -> list[bytes]:
    """PCM as a microphone gives it."""
    sound, size = speak(server, "pcm"), 2 * round(FRAME_S * RATE)
    return [sound[start : start + size] for start in range(0, len(sound), size)]
