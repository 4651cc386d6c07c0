"""Segments of a recording: where they begin and end, by probabilities that are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from cantata.speech_input.segmenter import SegmenterOptions, SpeechSegment, SpeechSegmenter
from cantata.speech_input.sound import HEARD_RATE
from cantata.speech_input.vad import WINDOW

SECOND = HEARD_RATE // WINDOW
"""Windows of about a second."""


class GivenJudge:
    """Says what it was given, window by window."""

    def __init__(self, probabilities: Sequence[float]) -> None:
        self._left: Iterator[float] = iter(probabilities)

    def compute_probability(self, window: NDArray[np.int16]) -> float:
        assert len(window) == WINDOW
        return next(self._left)


def cut(probabilities: Sequence[float], options: SegmenterOptions) -> list[SpeechSegment]:
    """The segments of a sound whose samples are their own places."""
    segmenter = SpeechSegmenter(GivenJudge(probabilities), options)
    sound = np.arange(len(probabilities) * WINDOW, dtype=np.float32)
    return [*segmenter.feed(sound), *segmenter.end()]


@pytest.mark.parametrize(
    ("quiet", "lead_s", "kept"), [(3 * SECOND, 1.0, SECOND), (3 * SECOND, 0.0, 0), (5, 1.0, 5)]
)
def test_a_segment_begins_before_its_first_window_of_speech(
    quiet: int, lead_s: float, kept: int
) -> None:
    speech = [0.1] * quiet + [0.4] + [0.9] * SECOND
    (found,) = cut(speech, SegmenterOptions(30.0, lead_s=lead_s))
    assert found.start == (quiet - kept) * WINDOW
    assert found.samples[0] == found.start
    assert found.lead_s * HEARD_RATE == pytest.approx(kept * WINDOW)
    assert len(found.samples) == len(speech) * WINDOW - found.start


def test_what_ended_one_segment_is_not_in_the_next() -> None:
    pause = 2 * SECOND
    speech = [0.9] * SECOND + [0.0] * pause + [0.9] * SECOND
    first, second = cut(speech, SegmenterOptions(30.0, lead_s=9.0, padding_s=0.3))
    assert first.start == 0
    assert second.start == len(first.samples)
    assert len(first.samples) + len(second.samples) == len(speech) * WINDOW


def test_unlikely_speech_is_none() -> None:
    assert cut([0.3] * 3 * SECOND, SegmenterOptions(30.0)) == []
