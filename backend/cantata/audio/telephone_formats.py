"""Formats of telephones, which some protocols take beyond those of OpenAI's speech route."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

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


def build_mono_output(
    name: str, model_rate: int, sample_rate: int, bit_rate: int | None = None
) -> OutputFormat:
    """Build the format of a model's sound in one channel, as `SoundStream` encodes it.

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
