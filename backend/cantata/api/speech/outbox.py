"""Messages that wait to be written to one WebSocket: ordered, bounded, revocable; and sound that is
not made too far ahead."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from cantata.api.speech.messages import AudioDone, AudioMarks, AudioTimestamps, InputSpoken
from cantata.audio.pcm import BYTES_PER_SAMPLE
from cantata.audio.playback import Playback
from cantata.contract.service import Samples

_MAX_MESSAGES = 64
_FRAMES_PER_S = 5
"""Longer pieces of sound are cut, so that little is in flight at a cancel."""


class OutboxFull(Exception):
    """The client keeps causing answers but reads none."""


@dataclass(frozen=True, slots=True, eq=False)
class AudioFrame:
    """The sound of one message; its writer encodes it."""

    utterance_id: str
    sound: Samples
    """[N, C] float32, in -1..1."""

    @property
    def samples(self) -> int:
        """Per channel."""
        return len(self.sound)

    @property
    def size(self) -> int:
        """Bytes, with 16 bits a sample."""
        return BYTES_PER_SAMPLE * self.sound.size


def make_frames(utterance_id: str, samples: Samples, sample_rate: int) -> Iterator[AudioFrame]:
    """[N, C] samples in pieces that are short enough for one message."""
    step = max(1, sample_rate // _FRAMES_PER_S)
    for start in range(0, len(samples), step):
        yield AudioFrame(utterance_id, samples[start : start + step])


Item = AudioFrame | BaseModel
"""Sound, or a message: the speaker's own, or an answer of the connection's protocol."""


class Outbox:
    """A bounded queue to one client. A writer task takes items out; the utterance's task waits for
    room; the task that reads the client's messages never waits."""

    def __init__(self, max_bytes: int) -> None:
        self._items: deque[Item] = deque()
        self._max_bytes = max_bytes
        self._bytes = 0
        self._closed = False
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def put(self, item: Item) -> None:
        """Append when there is room; a closed outbox drops it."""
        await self._room.wait()
        self._append(item)

    def post(self, item: Item) -> None:
        """Append at once. Raises OutboxFull: far more waits than any working client leaves
        unread."""
        if len(self._items) >= 2 * _MAX_MESSAGES:
            raise OutboxFull("the client does not read its answers")
        self._append(item)

    async def get(self) -> Item | None:
        """The next item; None when the outbox is closed and empty."""
        while not self._items:
            if self._closed:
                return None
            self._filled.clear()
            await self._filled.wait()
        item = self._items.popleft()
        if isinstance(item, AudioFrame):
            self._bytes -= item.size
        self._notify()
        return item

    def drop_audio(self) -> Counter[str]:
        """Drop PCM that is not written yet, with its word times. An
        `audio.done` that waits after it becomes that of a cancelled utterance, and
        `input.spoken` is dropped because it is no longer true.

        Returns:
            Samples dropped, by utterance.
        """
        dropped: Counter[str] = Counter()
        kept: deque[Item] = deque()
        for item in self._items:
            if isinstance(item, AudioFrame):
                dropped[item.utterance_id] += item.samples
            elif isinstance(item, AudioDone) and dropped[item.utterance_id]:
                kept.append(_build_cancelled(item, dropped[item.utterance_id]))
            elif isinstance(item, AudioTimestamps | AudioMarks) or (
                isinstance(item, InputSpoken) and dropped
            ):
                continue
            else:
                kept.append(item)
        self._items, self._bytes = kept, 0
        self._notify()
        return dropped

    def close(self) -> None:
        """Accept nothing more; what waits is still given out."""
        self._closed = True
        self._notify()

    def discard(self) -> None:
        """Close and drop what waits, after a disconnect."""
        self._items.clear()
        self._bytes = 0
        self.close()

    def _append(self, item: Item) -> None:
        if self._closed:
            return
        self._items.append(item)
        if isinstance(item, AudioFrame):
            self._bytes += item.size
        self._notify()

    def _notify(self) -> None:
        if self._items or self._closed:
            self._filled.set()
        full = self._bytes >= self._max_bytes or len(self._items) >= _MAX_MESSAGES
        if full and not self._closed:
            self._room.clear()
        else:
            self._room.set()


def _build_cancelled(done: AudioDone, dropped: int) -> AudioDone:
    samples = done.samples - dropped
    duration_s = done.duration_s * samples / done.samples
    return done.model_copy(update={"samples": samples, "duration_s": duration_s, "cancelled": True})


class SendPacer:
    """Sound that was sent and cannot have been played yet. `max_s`: how much of it there may be;
    None: any."""

    def __init__(self, max_s: float | None) -> None:
        self._max_s = max_s
        self._playback = Playback()

    @property
    def heard_until(self) -> float:
        """Loop time at which a client that plays at once has played everything; 0 before any."""
        return self._playback.playout_deadline_s or 0.0

    def take(self, duration_s: float) -> None:
        """Sound of this length arrives now."""
        self._playback.take(asyncio.get_running_loop().time(), duration_s)

    def reset(self) -> None:
        """The client plays no more of what it has."""
        self._playback = Playback()

    async def wait(self) -> None:
        """Wait until the client has no more than `max_s` of sound left to play."""
        if self._max_s is None:
            return
        ahead_s = self.heard_until - asyncio.get_running_loop().time()
        if ahead_s > self._max_s:
            await asyncio.sleep(ahead_s - self._max_s)
