"""Repeats an utterance after a loss; its listener gets each sample once."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cantata.audio.playback import Playback
from cantata.contract.data.errors import ReplicaLost
from cantata.contract.service import Samples, SpeechChunk


class ReplayDeduplicator:
    """How much of an utterance was passed on, and how much of its repetition is therefore dropped.

    Both must begin with the same samples, bit for bit; a checksum of what was passed on proves it,
    so the samples need not be kept.

    Args:
        sample_rate: Hz.
        clock: seconds, monotonic.
    """

    def __init__(self, sample_rate: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._sample_rate, self._clock = sample_rate, clock
        self._playback = Playback()
        self.samples = 0
        """Passed on, per channel."""
        self._words = 0
        self._sum = 0
        """CRC-32 of what was passed on."""
        self._again: _Repetition | None = None

    @property
    def is_begun(self) -> bool:
        """Whether anything was passed on."""
        return bool(self.samples or self._words)

    @property
    def playout_deadline_s(self) -> float:
        """When a listener who plays everything as it comes will have heard what was passed on, by
        the clock."""
        return self._playback.playout_deadline_s or 0.0

    def restart(self) -> None:
        """From now on, `take` gets the repetition, from its beginning."""
        started = self.is_begun
        self._again = _Repetition(self.samples, self._words, self._sum) if started else None

    def take(self, chunk: SpeechChunk) -> SpeechChunk | None:
        """The new part of a chunk; None if nothing in it is new.

        Raises:
            ReplicaLost: the repetition is not what was spoken before.
        """
        if self._again is not None:
            chunk = self._again.skip_replayed(chunk)
            if not len(chunk.samples) and not chunk.words:
                return None
        if len(chunk.samples):
            self._playback.take(self._clock(), len(chunk.samples) / self._sample_rate)
        self.samples += len(chunk.samples)
        self._words += len(chunk.words)
        self._sum = _checksum(chunk.samples, self._sum)
        return chunk

    def check_end(self) -> None:
        """The utterance is over.

        Raises:
            ReplicaLost: its repetition is shorter than what was passed on.
        """
        if self._again is not None:
            self._again.check_end()


class _Repetition:
    def __init__(self, samples: int, words: int, checksum: int) -> None:
        self._samples_left, self._words_left = samples, words
        self._expected, self._sum = checksum, 0

    def skip_replayed(self, chunk: SpeechChunk) -> SpeechChunk:
        words = min(self._words_left, len(chunk.words))
        self._words_left -= words
        samples = min(self._samples_left, len(chunk.samples))
        if samples:
            self._samples_left -= samples
            self._sum = _checksum(chunk.samples[:samples], self._sum)
            if not self._samples_left and self._sum != self._expected:
                raise ReplicaLost("another replica speaks the same request differently")
        return replace(
            chunk, samples=chunk.samples[samples:], words=chunk.words[words:], milestones=()
        )

    def check_end(self) -> None:
        if self._samples_left:
            raise ReplicaLost("another replica speaks the same request shorter")


def _checksum(samples: Samples, before: int) -> int:
    return zlib.crc32(np.ascontiguousarray(samples).data, before) if samples.size else before
