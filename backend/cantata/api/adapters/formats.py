"""Formats that other services' clients may request, beyond those of OpenAI's route."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from cantata.api.speech.outbox import AudioFrame
from cantata.audio.encoding import Encoder, open_encoder
from cantata.audio.formats import FORMATS, AudioFormat, OutputFormat, output_format

_TELEPHONE: Mapping[str, AudioFormat] = MappingProxyType(
    {
        one.name: one
        for one in (
            AudioFormat("mulaw", "audio/basic", max_channels=1, inline_s=1.0),
            AudioFormat("alaw", "audio/x-alaw-basic", max_channels=1, inline_s=1.0),
            AudioFormat("mulaw_wav", "audio/wav", max_channels=1, inline_s=1.0),
            AudioFormat("alaw_wav", "audio/wav", max_channels=1, inline_s=1.0),
        )
    }
)
"""ITU-T G.711: eight bits per sample, bare or behind a WAV header."""


ALL_FORMATS = (*FORMATS.values(), *_TELEPHONE.values())


def build_sound_output(
    name: str, model_rate: int, sample_rate: int, bit_rate: int | None = None
) -> OutputFormat:
    """Mono sound of a model, as `SoundStream` and `MonoResponse` make it.

    Args:
        name: one of `FORMATS`, or of G.711's.
        model_rate: Hz of the model.
        sample_rate: Hz of what is sent.
        bit_rate: per second, of compressed formats; None is the encoder's own.

    Raises:
        InvalidRequest: the format does not take this rate.
    """
    if name in FORMATS:
        output = output_format(name, model_rate, 1, sample_rate)
    else:
        output = OutputFormat(_TELEPHONE[name], model_rate, sample_rate, 1)
    return replace(output, bit_rate=bit_rate)


class SoundStream:
    """Encodes frames of one model.

    Args:
        output: what is made of the frames, with one channel.
    """

    def __init__(self, output: OutputFormat) -> None:
        self._output = output
        self._encoder: Encoder | None = None

    def feed(self, frame: AudioFrame) -> bytes:
        """Add sound; returns the complete part of the encoding, maybe nothing."""
        if self._encoder is None:
            self._encoder = open_encoder(self._output)
        return self._encoder.feed(frame.sound.mean(axis=1, keepdims=True))

    def end(self) -> bytes:
        """The rest of the sound; what is fed next begins another."""
        rest = b"" if self._encoder is None else self._encoder.finish()
        self.drop()
        return rest

    def drop(self) -> None:
        """Drop the rest of the sound and free what is held."""
        if self._encoder is not None:
            self._encoder.close()
            self._encoder = None
