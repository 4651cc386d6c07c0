"""How work at a replica talks to its edge. Sound leaves at once while the listener needs it, and in
longer pieces later.

When the link is lost, the session cancels the work. An error from the link as well would be a
second reason to leave, which could interrupt what the first one frees; so after a lost link, the
work waits here until the cancellation comes.
"""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import TypeVar

import numpy as np

from cantata.audio.playback import Playback
from cantata.contract.service import SpeechChunk
from cantata.distributed.link.errors import LinkLost, ProtocolError
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.messages import FrameKind, SoundMessage
from cantata.distributed.serialization import decode, encode

T = TypeVar("T")


async def send(stream: LinkStream, kind: FrameKind, message: object) -> None:
    """Send a message, once the edge has taken enough of those before it."""
    try:
        await stream.send(kind, *encode(message))
    except LinkLost:
        await asyncio.Event().wait()


async def receive(stream: LinkStream, kind: FrameKind, message: type[T]) -> T | None:
    """The next message, which must be of this kind; None: the edge has left."""
    try:
        frame = await stream.receive()
        if frame is None:
            return None
        if frame.kind != kind:
            raise ProtocolError(f"a frame of kind {frame.kind} arrived instead of {kind.name}")
        return decode(frame.body, message)
    except LinkLost as error:
        if isinstance(error, ProtocolError):
            stream.reject(error)
        await asyncio.Event().wait()
        raise


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
        sample_rate: Hz.
        joins: False: each chunk is sent at once.
    """

    def __init__(self, stream: LinkStream, sample_rate: int, *, joins: bool) -> None:
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

    def _take(self) -> SoundMessage:
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
        return SoundMessage.of(joined)
