"""Sound devices, through PortAudio, and the microphone among them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from cantata.contract.data.errors import CantataError


class NoSoundDevice(CantataError):
    """There is no sound device for what is asked, or nothing that reaches it."""

    code = "no_sound_device"


def load_sounddevice(purpose: str, extra: str, instead: str) -> Any:
    """The `sounddevice` module.

    Args:
        purpose: what it is needed for.
        extra: installs it.
        instead: what else the user can do, for the error.

    Raises:
        NoSoundDevice: it, or the library that it calls, is not installed.
    """
    try:
        import sounddevice
    except ImportError as error:
        raise NoSoundDevice(
            f"{purpose} needs the package sounddevice (pip install 'cantata[{extra}]'); {instead}"
        ) from error
    except OSError as error:
        raise NoSoundDevice(
            f"{purpose} needs the PortAudio library (on Debian, apt install libportaudio2); "
            f"{instead}"
        ) from error
    return sounddevice


_BLOCK_S = 0.1
"""Sound that is read at a time."""
_INSTEAD = "record elsewhere, and give the file instead"


class Microphone(AbstractContextManager["Microphone"]):
    """A sound device that records, from entering its context to leaving it.

    Args:
        name: a part of its name, or its number. None: the system's default.

    Raises:
        NoSoundDevice: there is none of that name, or none at all; says what to do.
    """

    def __init__(self, name: str | None) -> None:
        self._library = load_sounddevice("the microphone", "microphone", _INSTEAD)
        self._device = int(name) if name is not None and name.isdigit() else name
        found = self._find()
        self.name: str = found["name"]
        self.rate = round(found["default_samplerate"])
        """Hz"""
        self.has_lost_sound = False
        """Whether it was read too late."""
        self._stream: Any = None

    def __enter__(self) -> Microphone:
        try:
            self._stream = self._library.RawInputStream(
                samplerate=self.rate, channels=1, dtype="int16", device=self._device
            )
            self._stream.start()
        except self._library.PortAudioError as error:
            raise self._build_error("cannot be opened", error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.abort()
        self._stream.close()

    def read(self) -> bytes:
        """The next tenth of a second, mono, s16le; waits for it. Raises NoSoundDevice: the device
        is gone."""
        try:
            data, is_late = self._stream.read(round(self.rate * _BLOCK_S))
        except self._library.PortAudioError as error:
            raise self._build_error("has stopped", error) from error
        self.has_lost_sound |= is_late
        return bytes(data)

    def _find(self) -> Any:
        try:
            return self._library.query_devices(self._device, "input")
        except (self._library.PortAudioError, ValueError) as error:
            names = [
                one["name"] for one in self._library.query_devices() if one["max_input_channels"]
            ]
            if names and self._device is not None:
                raise NoSoundDevice(
                    f"no microphone {str(self._device)!r}; valid: a part of {', '.join(names)}"
                ) from error
            raise NoSoundDevice(
                f"this machine has no microphone; connect one, or {_INSTEAD}"
            ) from error

    def _build_error(self, what: str, error: Exception) -> NoSoundDevice:
        reason = str(error.args[0]) if error.args else repr(error)
        return NoSoundDevice(
            f"the microphone {self.name!r} {what} ({reason}); name another one with "
            f"--input-device, or {_INSTEAD}"
        )
