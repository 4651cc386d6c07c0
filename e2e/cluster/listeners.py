"""Listeners who ask for the same text again and again, and compare what they hear."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

TEXT = (
    "Good morning. This text is long enough that something can happen to the machine that speaks "
    "it, while somebody listens to it."
)
_LIMIT_S = 120.0
_PAUSE_S = 0.1
"""Of a listener after an error."""
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


@dataclass(frozen=True)
class Unread:
    """A stream of which only the beginning was read."""

    client: tuple[str, int]
    """The listener's end of the connection."""
    rest: Iterator[bytes]


@contextmanager
def unread(url: str) -> Iterator[Unread]:
    """One that is far longer than what a server sends ahead."""
    body = {"input": TEXT * 10, "response_format": "pcm"}
    with httpx.stream("POST", f"{url}/v1/audio/speech", json=body, timeout=_LIMIT_S) as answer:
        answer.raise_for_status()
        rest = answer.iter_raw()
        next(rest)
        yield Unread(answer.extensions["network_stream"].get_extra_info("client_addr"), rest)


@dataclass
class _Listener:
    """What became of one listener's requests."""

    same: int = 0
    different: int = 0
    errors: list[str] = field(default_factory=list)
    longest_gap_s: float = 0.0
    longest_out_s: float = 0.0
    failed_s: float | None = None
    """When the first of the requests failed that failed in a row."""

    def listen(self, url: str, expected: bytes, over: threading.Event) -> None:
        while not over.is_set():
            try:
                samples = self._stream(url)
            except httpx.HTTPError as error:
                self.failed_s = self.failed_s or time.monotonic()
                self.errors.append(f"{time.strftime('%X')} {error!r}")
                over.wait(_PAUSE_S)
                continue
            if samples == expected:
                self.same += 1
            else:
                self.different += 1

    def _stream(self, url: str) -> bytes:
        body = {"input": TEXT, "response_format": "pcm"}
        samples, playout_deadline_s = b"", None
        with httpx.stream("POST", f"{url}/v1/audio/speech", json=body, timeout=_LIMIT_S) as answer:
            if answer.is_error:
                raise httpx.HTTPError(f"{answer.status_code}: {answer.read().decode()}")
            for packet in answer.iter_bytes():
                now_s = time.monotonic()
                if playout_deadline_s is not None:
                    self.longest_gap_s = max(self.longest_gap_s, now_s - playout_deadline_s)
                elif self.failed_s is not None:
                    self.longest_out_s = max(self.longest_out_s, now_s - self.failed_s)
                    self.failed_s = None
                playout_deadline_s = (
                    max(playout_deadline_s or now_s, now_s) + len(packet) / _BYTES_PER_S
                )
                samples += packet
        return samples


class Audience:
    """Listeners of one server: they `join`, and all `leave` together.

    Args:
        url: of the server.
        expected: what an undisturbed request sounds like.
    """

    def __init__(self, url: str, expected: bytes) -> None:
        self._url, self._expected = url, expected
        self._over = threading.Event()
        self._listeners: list[_Listener] = []
        self._threads: list[threading.Thread] = []
        self.unexplained: Sequence[str] = ()
        """Errors that nothing excuses; once all have left."""

    def __len__(self) -> int:
        return len(self._listeners)

    @property
    def same(self) -> int:
        """Texts that were heard as expected."""
        return sum(one.same for one in self._listeners)

    @property
    def different(self) -> int:
        """Texts that sounded otherwise."""
        return sum(one.different for one in self._listeners)

    @property
    def errors(self) -> Sequence[str]:
        """Of requests that failed, each with its time."""
        return [error for one in self._listeners for error in one.errors]

    @property
    def longest_gap_s(self) -> float:
        """In which a player that began with the first packet had nothing to play."""
        return max(one.longest_gap_s for one in self._listeners)

    @property
    def longest_out_s(self) -> float:
        """From a listener's first error to the sound of its next request."""
        return max(one.longest_out_s for one in self._listeners)

    def join(self, count: int = 1) -> None:
        """So many more listen."""
        for _ in range(count):
            one = _Listener()
            thread = threading.Thread(
                target=one.listen, args=(self._url, self._expected, self._over)
            )
            self._listeners.append(one)
            self._threads.append(thread)
            thread.start()

    def leave(self) -> None:
        """Each hears what has begun to its end."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def excuse(self, reasons: Sequence[str], cut_off: int) -> None:
        """Errors that listeners have been told of as they should be.

        Args:
            reasons: words of those that came instead of sound.
            cut_off: how many streams ended early, with the reason in the server's log.
        """
        left = [one for one in self.errors if not any(reason in one for reason in reasons)]
        early = [one for one in left if "without sending complete message body" in one]
        self.unexplained = [one for one in left if one not in early] + early[cut_off:]

    def __str__(self) -> str:
        return (
            f"{len(self)} listening: {self.same} texts with the same samples, {self.different} "
            f"with others; {len(self.errors)} errors, {len(self.unexplained)} of them not for lack "
            f"of places; gap {self.longest_gap_s:.2f} s, out for {self.longest_out_s:.1f} s"
        )
