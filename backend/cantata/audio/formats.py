"""Output formats and the sample rates that each supports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cantata.contract.data.errors import InvalidRequest

MIN_SAMPLE_RATE = 8_000
MAX_SAMPLE_RATE = 48_000
"""Highest sample rate in Hz that a client may request."""

_MPEG_RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
_OPUS_RATES = (8_000, 12_000, 16_000, 24_000, 48_000)


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """One value of `response_format`."""

    name: str
    media_type: str
    sample_rates: tuple[int, ...] | None = None
    """Sample rates in Hz, ascending. None: any."""
    max_channels: int | None = 2
    """None: any number."""
    inline_s: float = 0.1
    """Seconds of sound that can be encoded within about a millisecond."""

    def takes(self, channels: int) -> bool:
        return self.max_channels is None or channels <= self.max_channels


FORMATS: Mapping[str, AudioFormat] = MappingProxyType(
    {
        one.name: one
        for one in (
            AudioFormat("mp3", "audio/mpeg", _MPEG_RATES),
            AudioFormat("opus", "audio/ogg", _OPUS_RATES),
            AudioFormat("aac", "audio/aac", _MPEG_RATES),
            AudioFormat("flac", "audio/flac"),
            AudioFormat("wav", "audio/wav", max_channels=None, inline_s=1.0),
            AudioFormat("pcm", "audio/pcm", max_channels=None, inline_s=1.0),
        )
    }
)


@dataclass(frozen=True, slots=True)
class OutputFormat:
    audio_format: AudioFormat
    model_rate: int
    """Sample rate of the model, in Hz."""
    sample_rate: int
    """Sample rate of the response, in Hz."""
    channels: int
    bit_rate: int | None = None
    """Bits per second, for compressed formats; None: the encoder's default."""
    tags: tuple[tuple[str, str], ...] = ()
    """Names and values, written at the beginning of files in every format but `pcm`."""


def output_format(name: str, model_rate: int, channels: int, asked: int | None) -> OutputFormat:
    """The output format for a model's sound.

    Args:
        name: one of `FORMATS`.
        model_rate: Hz, the model's own.
        asked: Hz, within `MIN_SAMPLE_RATE` and `MAX_SAMPLE_RATE`. None: the model's own, or the
            next higher one that the format takes.

    Raises:
        InvalidRequest: the format does not take this rate, or not so many channels.
    """
    audio_format = FORMATS[name]
    if not audio_format.takes(channels):
        valid = ", ".join(one.name for one in FORMATS.values() if one.takes(channels))
        raise InvalidRequest(
            f"response_format {name!r} takes at most {audio_format.max_channels} channels and "
            f"this model has {channels}; valid: {valid}",
            param="response_format",
        )
    rates = audio_format.sample_rates
    if asked is not None and rates is not None and asked not in rates:
        raise InvalidRequest(
            f"response_format {name!r} cannot have sample_rate {asked}; "
            f"valid: {', '.join(map(str, rates))}",
            param="sample_rate",
        )
    sample_rate = asked or _find_nearest(model_rate, rates)
    return OutputFormat(audio_format, model_rate, sample_rate, channels)


def _find_nearest(rate: int, rates: tuple[int, ...] | None) -> int:
    if rates is None:
        return rate
    return next((valid for valid in rates if valid >= rate), rates[-1])
