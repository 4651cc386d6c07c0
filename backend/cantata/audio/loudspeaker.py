"""The sound device as a listener who can be interrupted, and of whom is known what was heard."""

from __future__ import annotations

from collections import deque
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from threading import Condition, Thread
from types import TracebackType
from typing import Any

import numpy as np

from cantata.audio.devices import NoSoundDevice
from cantata.audio.sinks import Pcm, check_device

_BLOCK_S = 0.02
"""Sound that is given to the device at a time: an interruption waits for one block."""


@dataclass(slots=True)
class _QueuedAnswer:
    """An answer, as far as it is there."""

    name: str
    waiting: deque[Pcm] = field(default_factory=deque)
    is_whole: bool = False
    """No more of it comes."""
    is_stopped: bool = False
    given: int = 0
    """Samples that the device has."""


class Loudspeaker(AbstractContextManager["Loudspeaker"]):
    """Plays one answer after the other, from entering its context to leaving it.

    The device is open while an answer sounds, and closed between two.

    Args:
        rate: of the sound, in Hz; it is mono.

    Raises:
        NoSoundDevice: there is none; says what to do.
    """

    def __init__(self, rate: int) -> None:
        self._library = check_device()
        self._rate = rate
        self._change = Condition()
        self._answers = deque[_QueuedAnswer]()
        """The first one sounds."""
        self._latency_s = 0.0
        """From giving the device a sample to hearing it."""
        self._is_closed = False
        self._failure: NoSoundDevice | None = None
        self._thread = Thread(target=self._play, name="loudspeaker", daemon=True)

    def __enter__(self) -> Loudspeaker:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        with self._change:
            self._is_closed = True
            self._change.notify()
        self._thread.join()

    @property
    def is_playing(self) -> bool:
        """Whether an answer sounds, or will go on when more of it comes."""
        return bool(self._answers)

    def put(self, name: str, pcm: Pcm) -> None:
        """Add sound ([N, 1]) of an answer; returns at once. Raises NoSoundDevice: the device cannot
        be opened, or is gone."""
        with self._change:
            if self._failure is not None:
                raise self._failure
            if not self._answers or self._answers[-1].name != name:
                self.finish()
                self._answers.append(_QueuedAnswer(name))
            self._answers[-1].waiting.append(pcm)
            self._change.notify()

    def finish(self) -> None:
        """All of the latest answer is there: it ends when that was heard."""
        with self._change:
            if self._answers:
                self._answers[-1].is_whole = True
                self._change.notify()

    def stop(self) -> tuple[str, float] | None:
        """Leave out what was not heard.

        Returns:
            The answer that sounded, and the seconds of it that were heard; None: nothing was left.
        """
        with self._change:
            if not self._answers:
                return None
            for answer in self._answers:
                answer.is_stopped = True
            sounding = self._answers[0]
            self._change.notify()
            return sounding.name, max(0.0, sounding.given / self._rate - self._latency_s)

    def _play(self) -> None:
        try:
            self._play_answers()
        except self._library.PortAudioError as error:
            reason = str(error.args[0]) if error.args else repr(error)
            with self._change:
                self._failure = NoSoundDevice(f"the sound device has stopped ({reason})")
                self._answers.clear()

    def _play_answers(self) -> None:
        while (answer := self._wait_for_answer()) is not None:
            device = self._library.OutputStream(self._rate, channels=1, dtype="int16")
            with closing(device):
                device.start()
                self._latency_s = device.latency
                while (block := self._take_block(answer)) is not None:
                    device.write(block)
                    answer.given += len(block)
                if answer.is_stopped:
                    device.abort()
                else:
                    device.stop()  # once all was heard
            with self._change:
                self._answers.popleft()

    def _wait_for_answer(self) -> _QueuedAnswer | None:
        """The next one; None at the end."""
        with self._change:
            self._change.wait_for(lambda: self._answers or self._is_closed)
            return self._answers[0] if self._answers else None

    def _take_block(self, answer: _QueuedAnswer) -> Any:
        """[N, 1] to play next; None: no more."""
        with self._change:
            self._change.wait_for(
                lambda: answer.waiting or answer.is_whole or answer.is_stopped or self._is_closed
            )
            if answer.is_stopped or not answer.waiting:
                return None
            pcm, size = answer.waiting.popleft(), round(self._rate * _BLOCK_S)
            if len(pcm) > size:
                answer.waiting.appendleft(pcm[size:])
            return np.ascontiguousarray(pcm[:size])
