"""Plays answers out to a call's listener in real time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cantata.api.realtime.output_audio import HeardAnswer
from cantata.api.realtime.server_events import PlayoutEvent
from cantata.audio.pcm import BYTES_PER_SAMPLE

PLAYOUT_RATE = 48_000
"""Hz: Opus's own clock."""
FRAME_SAMPLES = PLAYOUT_RATE // 50
"""Samples of a packet: 20 ms."""
_FRAME_BYTES = FRAME_SAMPLES * BYTES_PER_SAMPLE
_SILENCE = bytes(_FRAME_BYTES)


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
        self._answers: deque[_PlayedAnswer] = deque()

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
        for answer in dropped:
            if answer.played:
                self._emit_event("cleared", answer)
        return [answer.heard for answer in dropped]

    def take(self) -> bytes:
        """The next `FRAME_SAMPLES`, in bytes; silence where there is nothing to play."""
        if not self._answers:
            return _SILENCE
        answer = self._answers[0]
        if len(answer.sound) < _FRAME_BYTES and not answer.ended:
            return _SILENCE
        if not answer.sound:  # it ended after its last packet
            self._finish(answer)
            return self.take()
        frame = bytes(answer.sound[:_FRAME_BYTES])
        del answer.sound[:_FRAME_BYTES]
        if not answer.played:
            self._emit_event("started", answer)
        answer.played += len(frame) // BYTES_PER_SAMPLE
        if answer.ended and not answer.sound:
            self._finish(answer)
        return frame.ljust(_FRAME_BYTES, b"\0")

    def _finish(self, answer: _PlayedAnswer) -> None:
        self._answers.popleft()
        self._emit_event("stopped", answer)

    def _emit_event(self, what: str, answer: _PlayedAnswer) -> None:
        kind = f"output_audio_buffer.{what}"
        event = {"type": kind, "response_id": answer.response_id}
        self._emit(PlayoutEvent.model_validate(event))
