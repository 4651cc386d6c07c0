"""Outputs on this machine: a file or the sound device."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import soundfile
from numpy.typing import NDArray

from cantata.audio.devices import NoSoundDevice, load_sounddevice
from cantata.contract.data.errors import CantataError

Pcm = NDArray[np.int16]
"""[N, C] samples of 16 bit."""


class SinkError(CantataError):
    """The file cannot be written."""

    code = "sink_error"


class Sink(AbstractContextManager["Sink"], Protocol):
    """Takes samples in order; closed by leaving its context. `write` may block."""

    def write(self, samples: Pcm) -> None:
        """Take more samples."""
        ...


class FileSink(Sink):
    """A sound file in the format that its name ends with (wav, flac, ogg, mp3 ...)."""

    def __init__(self, path: Path, sample_rate: int, channels: int) -> None:
        check_file(path)
        self._file = soundfile.SoundFile(path, "w", samplerate=sample_rate, channels=channels)

    def write(self, samples: Pcm) -> None:
        self._file.write(samples)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


class DeviceSink(Sink):
    """The default sound device. Leaving waits until everything has played, unless on an error."""

    def __init__(self, sample_rate: int, channels: int) -> None:
        device = check_device()
        self._stream = device.OutputStream(samplerate=sample_rate, channels=channels, dtype="int16")
        self._stream.start()

    def write(self, samples: Pcm) -> None:
        self._stream.write(np.ascontiguousarray(samples))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._stream.stop()
        else:
            self._stream.abort()
        self._stream.close()


def check_file(path: Path) -> None:
    """Check an output file before the work is done.

    Raises:
        SinkError: no such folder, or no such format.
    """
    formats = {name.lower() for name in soundfile.available_formats()}
    if path.suffix.lower().removeprefix(".") not in formats:
        raise SinkError(f"{path}: the name must end with a sound format such as .wav or .flac")
    if not path.parent.is_dir():
        raise SinkError(f"{path}: there is no folder {path.parent}")


def check_device() -> Any:
    """The `sounddevice` module, if there is a sound device.

    Raises:
        NoSoundDevice: it is not installed or there is none; says to write a file instead.
    """
    instead = "write a file instead, with -o out.wav"
    sounddevice = load_sounddevice("playing", "play", instead)
    try:
        sounddevice.query_devices(kind="output")
    except (sounddevice.PortAudioError, ValueError) as error:
        raise NoSoundDevice(f"this machine has no sound device to play on; {instead}") from error
    return sounddevice
