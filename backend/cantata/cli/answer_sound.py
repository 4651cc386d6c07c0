"""An answer's sound, which plays while its words still come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Protocol

from cantata.audio import sinks
from cantata.audio.sinks import DeviceSink, Pcm, Sink
from cantata.cli.sound_files import check_sound_file, open_sound_file
from cantata.client.answers import ANSWER_RATE
from cantata.media.provenance import make_sound_tags

_BLOCK = ANSWER_RATE // 10
"""Samples that are played before a stop is heard."""
_JOIN_S = 0.1


class AnswerPlayer(Protocol):
    """Takes the sound of one answer after the other."""

    def take(self, pcm: Pcm) -> None:
        """Add sound; returns at once."""
        ...

    def finish(self) -> None:
        """The answer is complete: wait until it has been heard."""
        ...

    def stop(self) -> None:
        """Leave out what has not been heard."""
        ...


class PlayedSound:
    """Implements `AnswerPlayer` on the sound device."""

    def __init__(self) -> None:
        sinks.check_device()
        self._playing: _Playing | None = None

    def take(self, pcm: Pcm) -> None:
        if self._playing is None:
            self._playing = _Playing()
        self._playing.queue.put(pcm)

    def finish(self) -> None:
        if self._playing is not None:
            self._playing.queue.put(None)
            while self._playing.thread.is_alive():  # so that Ctrl-C is heard
                self._playing.thread.join(_JOIN_S)
            self._playing = None

    def stop(self) -> None:
        if self._playing is not None:
            self._playing.stopped.set()
            self.finish()


class _Playing:
    def __init__(self) -> None:
        self.queue = SimpleQueue[Pcm | None]()
        self.stopped = Event()
        self.thread = Thread(target=self._play, name="chat:play", daemon=True)
        self.thread.start()

    def _play(self) -> None:
        with DeviceSink(ANSWER_RATE, 1) as device:
            while (pcm := self.queue.get()) is not None:
                for start in range(0, len(pcm), _BLOCK):
                    if not self.stopped.is_set():
                        device.write(pcm[start : start + _BLOCK])


class WrittenSound:
    """Implements `AnswerPlayer` with a file: all answers, one after the other."""

    def __init__(self, file: Sink) -> None:
        self._file = file

    def take(self, pcm: Pcm) -> None:
        self._file.write(pcm)

    def finish(self) -> None:
        """Written is heard."""

    def stop(self) -> None:
        """What has come is in the file."""


@contextmanager
def open_sound(speaks: bool, out: Path | None, model: str | None) -> Iterator[AnswerPlayer | None]:
    """Where answers sound; None: nowhere.

    Args:
        speaks: on the sound device, without a file.

    Raises:
        CantataError: there is no such device, folder or format.
    """
    if out is None:
        yield PlayedSound() if speaks else None
        return
    form = check_sound_file(out)
    with open_sound_file(out, form, ANSWER_RATE, 1, make_sound_tags(model)) as file:
        yield WrittenSound(file)
