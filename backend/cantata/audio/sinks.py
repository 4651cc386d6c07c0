"""Outputs on this machine: a file, a stream of bytes or the sound device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol

import numpy as np
import soundfile
from numpy.typing import NDArray

from cantata.audio.devices import NoSoundDevice, load_sounddevice
from cantata.audio.formats import FORMATS, output_format
from cantata.audio.pcm import to_float
from cantata.contract.data.errors import CantataError

Pcm = NDArray[np.int16]
"""[N, C] samples of 16 bit."""
Tags = Sequence[tuple[str, str]]


class SinkError(CantataError):
    """The file cannot be written."""

    code = "sink_error"


class Sink(AbstractContextManager["Sink"], Protocol):
    """Takes samples in order; closed by leaving its context. `write` may block."""

    def write(self, samples: Pcm) -> None: ...


class FileSink(Sink):
    """A sound file.

    Args:
        form: its format, of `check_file`.
        sample_rate: Hz.
        tags: names and values, for formats that have a place for them.
    """

    def __init__(
        self, path: Path, form: str, sample_rate: int, channels: int, tags: Tags = ()
    ) -> None:
        self._encoded: StreamSink | None = None
        if form.upper() in soundfile.available_formats():
            self._file: Any = soundfile.SoundFile(
                path, "w", samplerate=sample_rate, channels=channels, format=form.upper()
            )
            _write_tags(self._file, dict(tags))
        else:
            self._file = path.open("wb")
            self._encoded = StreamSink(self._file, form, sample_rate, channels, tags)

    def write(self, samples: Pcm) -> None:
        (self._encoded or self._file).write(samples)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._file:
            if self._encoded is not None:
                self._encoded.__exit__(kind, error, trace)


class StreamSink(Sink):
    """The bytes of a file as it grows, such as standard output; each part leaves at once.

    Args:
        stream: takes the bytes; stays open.
        form: one of `FORMATS`.
        sample_rate: of the samples, in Hz; a format that cannot have it gets the next one.
        tags: names and values, which come first.

    Raises:
        InvalidRequest: the format cannot have so many channels.
    """

    def __init__(
        self, stream: BinaryIO, form: str, sample_rate: int, channels: int, tags: Tags = ()
    ) -> None:
        from cantata.audio.encoding import open_encoder

        self._stream = stream
        output = output_format(form, sample_rate, channels, None)
        self._encoder = open_encoder(replace(output, tags=tuple(tags)))

    def write(self, samples: Pcm) -> None:
        self._stream.write(self._encoder.feed(to_float(samples)))
        self._stream.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._stream.write(self._encoder.finish())
                self._stream.flush()
        finally:
            self._encoder.close()


def _write_tags(file: soundfile.SoundFile, tags: Mapping[str, str]) -> None:
    """libsndfile has few names for tags: the source type joins the comment."""
    try:
        if tags:
            file.software = tags["software"]
            file.comment = f"{tags['comment']} ({tags['digital_source_type']})"
    except soundfile.LibsndfileError:
        return  # AU, RAW and the like have no place for them


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


def check_file(path: Path, form: str | None = None) -> str:
    """Check an output file before the work is done, and find its format.

    Args:
        path: its name's ending is the format, if none is given.
        form: one of `FORMATS`; None: by the name.

    Raises:
        SinkError: no such folder, or no such format.
    """
    ending = path.suffix.lower().removeprefix(".")
    valid = {*FORMATS, *(name.lower() for name in soundfile.available_formats())}
    if form is None and ending not in valid:
        raise SinkError(
            f"{path}: the name must end with a sound format such as .wav or .flac; or give --format"
        )
    if not path.parent.is_dir():
        raise SinkError(f"{path}: there is no folder {path.parent}")
    return form or ending


def check_device() -> Any:
    """The `sounddevice` module, if there is a sound device. Raises NoSoundDevice: it is not
    installed or there is none; says to write a file instead."""
    instead = "write a file instead, with -o out.wav"
    sounddevice = load_sounddevice("playing", "play", instead)
    try:
        sounddevice.query_devices(kind="output")
    except (sounddevice.PortAudioError, ValueError) as error:
        raise NoSoundDevice(f"this machine has no sound device to play on; {instead}") from error
    return sounddevice
