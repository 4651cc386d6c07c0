"""Encodes a stream of a model's sound, one file or bare stream after another."""

from __future__ import annotations

from cantata.audio.encoding import Encoder, open_encoder
from cantata.audio.formats import OutputFormat
from cantata.contract.service import Samples


class SoundStream:
    """Encodes the sound of one model, in one channel. `output`: what is made of the sound, with one
    channel."""

    def __init__(self, output: OutputFormat) -> None:
        self._output = output
        self._encoder: Encoder | None = None

    def feed(self, samples: Samples) -> bytes:
        """Add [N, C] sound; returns the complete part of the encoding, maybe nothing."""
        if self._encoder is None:
            self._encoder = open_encoder(self._output)
        return self._encoder.feed(samples.mean(axis=1, keepdims=True))

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
