"""Sound devices, through PortAudio."""

from __future__ import annotations

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
