"""Plays answers out to a call's listener in real time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cantata.api.realtime.output_audio import HeardAnswer
from cantata.api.realtime.server_events import PlayoutEvent
from cantata.audio.pcm import BYTES_PER_SAMPLE

PLAYOUT_RATE = 48_000
"""Hz: Opus's own clock."""
FRAME_SAMPLES = PLAYOUT_RATE // 50
"""Samples of a packet: 20 ms."""
_FRAME_BYTES = FRAME_SAMPLES * BYTES_PER_SAMPLE
_MAX_PAUSED = 125
"""Packets of one pause, 2.5 s: then the answer goes on, whatever is heard."""


@dataclass(slots=True)
class _PlayedAnswer:
    """An answer of which something may still be heard."""

    response_id: str
    item_id: str
    sound: bytearray = field(default_factory=bytearray)
    """What has not been played."""
    played: int = 0
    """Samples."""
    ended: bool = False
    """Nothing is added any more."""

    @property
    def heard(self) -> HeardAnswer:
        return HeardAnswer(self.item_id, self.played / PLAYOUT_RATE)


class Playout:
    """The sound of a call's answers, one after the other, s16le at `PLAYOUT_RATE`, mono.

    `take` is the clock: whoever sends the packets calls it for each of them.

    Args:
        emit: sends an event to the listener's client.
    """

    def __init__(self, emit: Callable[[PlayoutEvent], None]) -> None:
        self._emit = emit
        self.on_played: Callable[[bytes], None] | None = None
        """Is told of every packet of an answer."""
        self._answers: deque[_PlayedAnswer] = deque()
        self._paused: int | None = None
        """Packets since `pause`; None: not paused."""
        self._rises = False
        """Whether the next packet fades in."""

    @property
    def playing(self) -> bool:
        """Whether there is sound that was not heard."""
        return any(answer.sound for answer in self._answers)

    def begin(self, response_id: str, item_id: str) -> None:
        """The sound that follows belongs to this answer."""
        self.end()
        self._answers.append(_PlayedAnswer(response_id, item_id))

    def feed(self, sound: bytes) -> None:
        """Add sound of the answer begun last. If that one was cleared, nobody wants it."""
        if self._answers and not self._answers[-1].ended:
            self._answers[-1].sound += sound

    def end(self) -> None:
        """Nothing of the answer begun last follows; the rest of it is played."""
        if not self._answers:
            return
        last = self._answers[-1]
        last.ended = True
        if not last.sound and not last.played:
            self._answers.pop()

    def clear(self) -> Sequence[HeardAnswer]:
        """Play no more; returns the answers of which something was left, or might have come."""
        dropped, self._answers = self._answers, deque()
        self._paused, self._rises = None, False
        for answer in dropped:
            if answer.played:
                self._emit_event("cleared", answer)
        return [answer.heard for answer in dropped]

    def pause(self) -> None:
        """Fade out in the next packet, and then play nothing until `resume`, `clear`, or 2.5 s
        later. Nothing is lost."""
        if self._paused is None:
            self._paused = 0

    def resume(self) -> None:
        """Fade in where `pause` began to fade out, on the sample."""
        self._paused = None

    def take(self) -> bytes:
        """The next `FRAME_SAMPLES`, in bytes; silence where there is nothing to play."""
        if self._paused is not None and self._paused < _MAX_PAUSED:
            frame = b"" if self._paused else self._fade_out()
            self._paused += 1
        else:
            frame = self._take_next()
            if frame and self._rises:
                self._rises = False
                frame = _fade(frame, 0.0, 1.0)
        if frame and self.on_played is not None:
            self.on_played(frame)
        return frame.ljust(_FRAME_BYTES, b"\0")

    def _fade_out(self) -> bytes:
        """The next packet as it fades; it stays the next one."""
        if not self._answers or not self._answers[0].played:
            return b""
        frame = bytes(self._answers[0].sound[:_FRAME_BYTES])
        self._rises = True
        return _fade(frame, 1.0, 0.0)

    def _take_next(self) -> bytes:
        """The next packet of an answer; empty where there is none."""
        if not self._answers:
            return b""
        answer = self._answers[0]
        if len(answer.sound) < _FRAME_BYTES and not answer.ended:
            return b""
        if not answer.sound:  # it ended after its last packet
            self._finish(answer)
            return self._take_next()
        frame = bytes(answer.sound[:_FRAME_BYTES])
        del answer.sound[:_FRAME_BYTES]
        if not answer.played:
            self._emit_event("started", answer)
        answer.played += len(frame) // BYTES_PER_SAMPLE
        if answer.ended and not answer.sound:
            self._finish(answer)
        return frame

    def _finish(self, answer: _PlayedAnswer) -> None:
        self._answers.popleft()
        self._emit_event("stopped", answer)

    def _emit_event(self, what: str, answer: _PlayedAnswer) -> None:
        kind = f"output_audio_buffer.{what}"
        event = {"type": kind, "response_id": answer.response_id}
        self._emit(PlayoutEvent.model_validate(event))


def _fade(frame: bytes, first: float, last: float) -> bytes:
    """A packet whose level goes from one share of its own to another."""
    samples = np.frombuffer(frame, "<i2")
    return (samples * np.linspace(first, last, len(samples))).astype("<i2").tobytes()
