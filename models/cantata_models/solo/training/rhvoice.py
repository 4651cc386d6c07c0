"""RHVoice's engine in this process (Debian package librhvoice5, RHVoice.h 1.8), through ctypes.

RHVoice's command line program loads a voice for every sentence, which takes as long as reading it.
"""

from __future__ import annotations

import ctypes as c
import functools

import numpy as np
import numpy.typing as npt

LIBRARY = "libRHVoice.so.5"
INT16_SCALE = 32768.0

_SetRate = c.CFUNCTYPE(c.c_int, c.c_int, c.c_void_p)
_Play = c.CFUNCTYPE(c.c_int, c.POINTER(c.c_short), c.c_uint, c.c_void_p)


class _Callbacks(c.Structure):
    _fields_ = (
        ("set_sample_rate", _SetRate),
        ("play_speech", _Play),
        ("process_mark", c.c_void_p),
        ("word_starts", c.c_void_p),
        ("word_ends", c.c_void_p),
        ("sentence_starts", c.c_void_p),
        ("sentence_ends", c.c_void_p),
        ("play_audio", c.c_void_p),
        ("done", c.c_void_p),
    )


class _InitParams(c.Structure):
    _fields_ = (
        ("data_path", c.c_char_p),
        ("config_path", c.c_char_p),
        ("resource_paths", c.c_void_p),
        ("callbacks", _Callbacks),
        ("options", c.c_uint),
    )


class _SynthParams(c.Structure):
    _fields_ = (
        ("voice_profile", c.c_char_p),
        ("absolute_rate", c.c_double),
        ("absolute_pitch", c.c_double),
        ("absolute_volume", c.c_double),
        ("relative_rate", c.c_double),
        ("relative_pitch", c.c_double),
        ("relative_volume", c.c_double),
        ("punctuation_mode", c.c_int),
        ("punctuation_list", c.c_char_p),
        ("capitals_mode", c.c_int),
        ("flags", c.c_int),
    )


class Engine:
    """One engine with every installed voice. Not thread-safe.

    Raises:
        OSError: the library is not installed.
        RuntimeError: no voices are installed.
    """

    def __init__(self) -> None:
        self._library = c.CDLL(LIBRARY)
        self._library.RHVoice_new_tts_engine.restype = c.c_void_p
        self._library.RHVoice_new_message.restype = c.c_void_p
        self._heard: list[npt.NDArray[np.int16]] = []
        self._sample_rate = 0
        # The engine calls these for its whole life, so keep a reference to them.
        self._callbacks = _Callbacks(_SetRate(self._set_rate), _Play(self._play))
        params = _InitParams(callbacks=self._callbacks)
        self._engine = self._library.RHVoice_new_tts_engine(c.byref(params))
        if not self._engine:
            raise RuntimeError("RHVoice finds no voices: install the package rhvoice-english")

    def _set_rate(self, rate: int, user_data: int | None) -> int:
        self._sample_rate = rate
        return 1

    def _play(self, samples: c._Pointer[c.c_short], count: int, user_data: int | None) -> int:
        self._heard.append(np.ctypeslib.as_array(samples, (count,)).copy())
        return 1

    def speak(
        self, text: str, voice: str, rate: float, pitch: float
    ) -> tuple[npt.NDArray[np.float32], int]:
        """Returns the reading, [N] float32, and its sample rate.

        Args:
            voice: RHVoice's name for the voice.
            rate: relative to the voice's usual pace.
            pitch: relative to the voice's usual pitch.

        Raises:
            RuntimeError: the engine failed or returned no audio.
        """
        self._heard.clear()
        params = _SynthParams(
            voice_profile=voice.encode(),
            relative_rate=rate,
            relative_pitch=pitch,
            relative_volume=1,
        )
        data = text.encode()
        message = c.c_void_p(
            self._library.RHVoice_new_message(
                c.c_void_p(self._engine), data, len(data), 0, c.byref(params), None
            )
        )
        if not message:
            raise RuntimeError(f"RHVoice cannot read with {voice!r}")
        self._library.RHVoice_speak(message)
        self._library.RHVoice_delete_message(message)
        if not self._heard:
            raise RuntimeError(f"RHVoice said nothing for {text!r}")
        samples = np.concatenate(self._heard).astype(np.float32) / np.float32(INT16_SCALE)
        return samples, self._sample_rate


@functools.cache
def engine() -> Engine:
    """Returns this process's engine."""
    return Engine()
