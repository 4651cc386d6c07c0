"""Utterances of one channel in the client's encoding: mono, one sound until it is ended."""

from __future__ import annotations

import numpy as np

from cantata.api.outbox import AudioFrame
from cantata.audio.encoding import Encoder, open_encoder
from cantata.audio.formats import OutputFormat
from cantata.contract.service import ServedModel

_STEP = np.float32(1 / 32767)


class SoundStream:
    """Encodes frames of one model.

    Args:
        model: whose frames are fed.
        output: what is made of them, with one channel.
    """

    def __init__(self, model: ServedModel, output: OutputFormat) -> None:
        self._channels = model.channels
        self._output = output
        self._encoder: Encoder | None = None

    def feed(self, frame: AudioFrame) -> bytes:
        """Add sound; returns the complete part of the encoding, maybe nothing."""
        if self._encoder is None:
            self._encoder = open_encoder(self._output)
        samples = np.frombuffer(frame.data, "<i2").astype(np.float32) * _STEP
        if self._channels > 1:
            samples = samples.reshape(-1, self._channels).mean(axis=1, dtype=np.float32)
        return self._encoder.feed(samples)

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
