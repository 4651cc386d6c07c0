"""Listeners who ask for the same text again and again, and compare what they hear."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

TEXT = (
    "Good morning. This text is long enough that something can happen to the machine that speaks "
    "it, while somebody listens to it."
)
_LIMIT_S = 120.0
_BYTES_PER_S = 2 * 24_000
"""Of the embedded voice."""


def speak(url: str) -> bytes:
    """The text's PCM.

    Raises:
        httpx.HTTPError: anything but sound.
    """
    body = {"input": TEXT, "response_format": "pcm"}
    answer = httpx.post(f"{url}/v1/audio/speech", json=body, timeout=_LIMIT_S)
    answer.raise_for_status()
    return answer.content


@dataclass
class Heard:
    """What became of all requests."""

    same: int = 0
    different: int = 0
    errors: list[str] = field(default_factory=list)
    longest_gap_s: float = 0.0
    """In which a player that began with the first packet had nothing to play."""


@contextmanager
def listening(url: str, streams: int, expected: bytes) -> Iterator[Heard]:
    """Listen inside the block; each stream that has begun there is heard to its end."""
    heard, over = Heard(), threading.Event()
    with ThreadPoolExecutor(streams) as pool:
        asking: list[Future[None]] = [
            pool.submit(_listen, url, expected, heard, over) for _ in range(streams)
        ]
        try:
            yield heard
        finally:
            over.set()
    for one in asking:
        one.result()


def _listen(url: str, expected: bytes, heard: Heard, over: threading.Event) -> None:
    while not over.is_set():
        try:
            samples = _stream(url, heard)
        except httpx.HTTPError as error:
            heard.errors.append(repr(error))
            over.wait(0.5)
            continue
        if samples == expected:
            heard.same += 1
        else:
            heard.different += 1


def _stream(url: str, heard: Heard) -> bytes:
    body = {"input": TEXT, "response_format": "pcm"}
    samples, runs_dry_s = b"", None
    with httpx.stream("POST", f"{url}/v1/audio/speech", json=body, timeout=_LIMIT_S) as answer:
        if answer.is_error:
            raise httpx.HTTPError(f"{answer.status_code}: {answer.read().decode()}")
        for packet in answer.iter_bytes():
            now_s = time.monotonic()
            if runs_dry_s is not None:
                heard.longest_gap_s = max(heard.longest_gap_s, now_s - runs_dry_s)
            runs_dry_s = max(runs_dry_s or now_s, now_s) + len(packet) / _BYTES_PER_S
            samples += packet
    return samples
