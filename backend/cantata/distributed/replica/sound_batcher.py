"""Sound on its way to a listener: at once while it is needed, in longer pieces later."""

from __future__ import annotations

import asyncio
from itertools import chain

import numpy as np

from cantata.audio.playback import Playback
from cantata.contract.service import SpeechChunk
from cantata.distributed.link.stream import Stream
from cantata.distributed.messages import FrameKind, Sound
from cantata.distributed.replica.messaging import send
from cantata.distributed.serialization import encode

SHARE = 0.5
"""Of what a listener has left to play, the most that is held."""
RESERVE_S = 0.15
"""What is held is sent when no more than this is left to play."""
PIECE_BYTES = 32 << 10
"""Of the longest piece: 0.34 s of mono sound at 24 kHz. It must be far less than
`edge.crash_tracker.LEEWAY_BYTES`, since what is held when a replica dies has not arrived."""


class SoundBatcher:
    """Sends one utterance's chunks to its edge. A message costs the edge, and the replica, about as
    much as the sound in it, so a listener who has enough to play gets fewer of them.

    Args:
        stream: of the order.
        sample_rate: Hz.
        joins: False: each chunk is sent at once.
    """

    def __init__(self, stream: Stream, sample_rate: int, *, joins: bool) -> None:
        self._stream, self._sample_rate, self._joins = stream, sample_rate, joins
        self._loop = asyncio.get_running_loop()
        self._playback = Playback()
        """Of what was sent; a listener plays it later than that, never earlier."""
        self._held: list[SpeechChunk] = []
        self._held_samples = 0
        self._timer: asyncio.TimerHandle | None = None
        """While something is held."""

    async def send(self, chunk: SpeechChunk) -> None:
        """Send a chunk, or hold it for the next ones; waits while the edge takes nothing."""
        self._held.append(chunk)
        self._held_samples += len(chunk.samples)
        if self._joins and self._may_hold(chunk):
            if self._timer is None:
                self._timer = self._loop.call_at(self._deadline_s - RESERVE_S, self._hurry)
        else:
            await self.flush()

    def _may_hold(self, chunk: SpeechChunk) -> bool:
        """Whether another chunk like this one may be waited for."""
        samples = self._held_samples + len(chunk.samples)
        if samples * chunk.samples.itemsize * chunk.samples.shape[1] > PIECE_BYTES:
            return False
        left_s = self._deadline_s - self._loop.time()
        return samples / self._sample_rate <= SHARE * left_s and left_s > RESERVE_S

    @property
    def _deadline_s(self) -> float:
        """Loop time at which the listener will have played what was sent, or later; 0 before
        any."""
        return self._playback.playout_deadline_s or 0.0

    async def flush(self) -> None:
        """Send what is held."""
        if self._held:
            await send(self._stream, FrameKind.SOUND, self._take())

    def close(self) -> None:
        """Send nothing more by itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hurry(self) -> None:
        """The listener needs what is held, unless much else has not been taken yet."""
        self._timer = None
        if self._held and self._stream.can_send:
            self._stream.post(FrameKind.SOUND, *encode(self._take()))

    def _take(self) -> Sound:
        """All that is held."""
        self.close()
        held, self._held, self._held_samples = self._held, [], 0
        joined = held[0]
        if len(held) > 1:
            joined = SpeechChunk(
                np.concatenate([chunk.samples for chunk in held]),
                tuple(chain.from_iterable(chunk.words for chunk in held)),
                tuple(chain.from_iterable(chunk.milestones for chunk in held)),
            )
        self._playback.take(self._loop.time(), len(joined.samples) / self._sample_rate)
        return Sound.of(joined)
