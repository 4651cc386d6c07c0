"""Streaming encoders: samples in, the bytes of a growing file out; one per response."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import soxr

from cantata.audio.codecs import CODECS, CompressedEncoder
from cantata.audio.formats import OutputFormat
from cantata.audio.pcm import build_streaming_header, encode_s16le, with_sizes
from cantata.contract.service import Samples


class Encoder(Protocol):
    """Makes one file from samples that arrive in pieces.

    Calls do not overlap, but may come from different threads.
    """

    def feed(self, samples: Samples) -> bytes:
        """Add samples; returns the complete bytes so far, which may be none."""
        ...

    def finish(self) -> bytes:
        """The rest of the file. Call this last."""
        ...

    def encode_head(self, size: int) -> bytes:
        """What the file should begin with now that it is whole, for those who have kept it; as long
        as what it begins with, or empty. Call this after `finish`.

        Args:
            size: bytes of the whole file.
        """
        ...

    def close(self) -> None:
        """Free resources, even in the middle of a file. May be called twice."""
        ...


def open_encoder(output: OutputFormat) -> Encoder:
    """The encoder of one response; takes a few milliseconds."""
    name, sample_rate, channels = output.audio_format.name, output.sample_rate, output.channels
    encoder: Encoder
    if name in CODECS:
        codec = CODECS[name]
        encoder = CompressedEncoder(codec, sample_rate, channels, output.bit_rate, output.tags)
    else:
        wav = name == "wav"
        encoder = _PcmEncoder(
            build_streaming_header(sample_rate, channels, output.tags) if wav else b""
        )
    if sample_rate == output.model_rate:
        return encoder
    return _ResamplingEncoder(encoder, output)


def has_tags(output: OutputFormat) -> bool:
    """Whether a file of this format carries its tags: not all have a place for any."""
    name = output.audio_format.name
    has_place = CODECS[name].tag_options is not None if name in CODECS else name == "wav"
    return bool(output.tags) and has_place


class _PcmEncoder:
    """Signed 16 bit, little endian, behind a header that may be empty."""

    def __init__(self, header: bytes) -> None:
        self._header = self._whole_header = header

    def feed(self, samples: Samples) -> bytes:
        return self._take_header() + encode_s16le(samples)

    def finish(self) -> bytes:
        return self._take_header()

    def encode_head(self, size: int) -> bytes:
        return with_sizes(self._whole_header, size) if self._whole_header else b""

    def close(self) -> None:
        pass

    def _take_header(self) -> bytes:
        header, self._header = self._header, b""
        return header


class _ResamplingEncoder:
    """Resamples for an encoder that runs at another rate.

    The filter keeps its state from piece to piece, so that its output is the same as if the whole
    sound had been resampled at once.
    """

    def __init__(self, encoder: Encoder, output: OutputFormat) -> None:
        self._encoder = encoder
        self._channels = output.channels
        self._resampler = soxr.ResampleStream(
            output.model_rate, output.sample_rate, output.channels, dtype="float32", quality="HQ"
        )

    def feed(self, samples: Samples) -> bytes:
        # A single not-a-number would spoil every later sample.
        return self._encoder.feed(self._resample(np.nan_to_num(samples), last=False))

    def finish(self) -> bytes:
        rest = self._resample(np.zeros((0, self._channels), np.float32), last=True)
        return self._encoder.feed(rest) + self._encoder.finish()

    def encode_head(self, size: int) -> bytes:
        return self._encoder.encode_head(size)

    def close(self) -> None:
        self._encoder.close()

    def _resample(self, samples: Samples, *, last: bool) -> Samples:
        resampled: Samples = self._resampler.resample_chunk(samples, last=last)
        return resampled
