"""Stretches a request's sound to the requested speed, where its model cannot speak at it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from cantata.audio.stretch import TimeStretch
from cantata.contract.data.chunks import Chunk, Milestone, Pcm, WordTiming
from cantata.contract.process.messages import StageCapacity
from cantata.contract.service import Samples

AT_ONCE_S = 0.08
"""Seconds of stretched sound that take about a millisecond to make; other tasks run between two
such pieces."""
FIRST_S = 0.04
"""Least sound in the first chunk: a fast listener plays a frame in a fraction of its period, and
the next frame takes a talker step."""


def stretch_time(
    chunks: Iterable[Chunk[Pcm]], factor: float, output: StageCapacity
) -> Iterator[Chunk[Pcm]]:
    """The chunks of one request, played `factor` times as fast; `index` and `final` are not
    updated.

    Args:
        chunks: in order.
        factor: 2 is twice as fast, 1 changes nothing.
        output: of the stage that made them, which knows the samples' format.
    """
    stretch = ChunkStretch(factor, output)
    for chunk in chunks:
        for _ in stretch.feed(chunk):
            pass
        yield from stretch.ready()
    yield from stretch.finish()


class ChunkStretch:
    """Stretches one request's chunks, their words' times with them. At factor 1 they pass through
    unchanged.

    Words and milestones wait for samples. The samples do not depend on how the chunks were cut.
    """

    def __init__(self, factor: float, output: StageCapacity) -> None:
        sample_rate = output.sample_rate or 0
        self._factor = factor
        self._stretch: TimeStretch | None = None
        if factor != 1.0:
            self._stretch = TimeStretch(factor, sample_rate, output.channels)
        self._at_once = max(1, round(AT_ONCE_S * sample_rate * factor))
        self._min_samples = round(FIRST_S * sample_rate)
        self._latest: Chunk[Pcm] | None = None
        self._samples: list[Samples] = []
        self._words: list[WordTiming] = []
        self._milestones: list[Milestone] = []

    def feed(self, chunk: Chunk[Pcm]) -> Iterator[None]:
        """Add a chunk; iterate to the end; other tasks may run between two steps."""
        self._latest = chunk
        if self._stretch is None:
            return
        self._words += [
            replace(word, start_s=word.start_s / self._factor, end_s=word.end_s / self._factor)
            for word in chunk.payload.words
        ]
        self._milestones += chunk.milestones
        samples = chunk.payload.samples
        for start in range(0, len(samples), self._at_once):
            if start:
                yield
            self._samples.append(self._stretch.feed(samples[start : start + self._at_once]))

    def ready(self) -> Iterator[Chunk[Pcm]]:
        """The sound available now: one chunk, or none yet."""
        if self._latest is None:
            return
        if self._stretch is None:
            yield self._latest
        elif sum(map(len, self._samples)) >= self._min_samples:
            self._min_samples = 1
            yield self._take(self._latest)

    def finish(self) -> Iterator[Chunk[Pcm]]:
        """The rest, after the last chunk."""
        if self._stretch is not None and self._latest is not None:
            self._samples.append(self._stretch.finish())
            yield self._take(self._latest)

    def _take(self, chunk: Chunk[Pcm]) -> Chunk[Pcm]:
        """Everything that waits, as a chunk of the same request."""
        sound = Pcm(np.concatenate(self._samples), tuple(self._words))
        consumed = replace(chunk, payload=sound, milestones=tuple(self._milestones))
        self._samples, self._words, self._milestones = [], [], []
        return consumed
