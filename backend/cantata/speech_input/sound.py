"""Converts a client's sound for the recognizers: 16 kHz, mono, signed 16 bit."""

from __future__ import annotations

from functools import cache
from typing import Literal

import av
import numpy as np
import soxr
from numpy.typing import NDArray

from cantata.audio.pcm import BYTES_PER_SAMPLE, to_s16

HEARD_RATE = 16_000
"""Sample rate of the recognizers' sound, in Hz."""
_FULL_SCALE = np.float32(32768)
Encoding = Literal["pcm", "mulaw", "alaw"]

Heard = NDArray[np.int16]
"""[N] samples at `HEARD_RATE`."""


class SoundInput:
    """Decodes one stream of sound, in pieces that may end anywhere.

    Args:
        encoding: s16le, or ITU-T G.711.
        rate: Hz.
    """

    def __init__(self, encoding: Encoding, rate: int) -> None:
        self._encoding = encoding
        self._rate = rate
        self._half = b""
        """The first byte of a sample that is not complete yet."""
        self._resampler = self._create_resampler()

    def feed(self, data: bytes) -> Heard:
        """The samples that are certain now; the filter keeps back a few milliseconds."""
        return self._to_windows(self._decode_samples(data), last=False)

    def end(self) -> Heard:
        """The remaining samples; sound fed after this begins another stream."""
        self._half = b""
        rest = self._to_windows(np.zeros(0, np.float32), last=True)
        self._resampler = self._create_resampler()
        return rest

    def _decode_samples(self, data: bytes) -> NDArray[np.float32]:
        if self._encoding != "pcm":
            return _build_g711_table(self._encoding)[np.frombuffer(data, np.uint8)]
        data = self._half + data
        whole = len(data) - len(data) % BYTES_PER_SAMPLE
        self._half = data[whole:]
        return np.frombuffer(data[:whole], "<i2").astype(np.float32) / _FULL_SCALE

    def _to_windows(self, samples: NDArray[np.float32], *, last: bool) -> Heard:
        return to_s16(self._resampler.resample_chunk(samples, last=last))

    def _create_resampler(self) -> soxr.ResampleStream:
        # Speech below 7 kHz is what recognizers use: the steeper filters would only add delay.
        return soxr.ResampleStream(self._rate, HEARD_RATE, 1, dtype="float32", quality="LQ")


@cache
def _build_g711_table(encoding: Encoding) -> NDArray[np.float32]:
    """[256]: the value of each G.711 code, as in FFmpeg's decoder."""
    decoder = av.CodecContext.create(f"pcm_{encoding}", "r")
    assert isinstance(decoder, av.AudioCodecContext)
    decoder.sample_rate = 8000
    decoder.layout = "mono"
    (frame,) = decoder.decode(av.Packet(bytes(range(256))))
    return frame.to_ndarray().reshape(-1).astype(np.float32) / _FULL_SCALE
