"""When words are heard."""

from __future__ import annotations

import numpy as np
import pytest

from cantata.contract.data.chunks import WordTiming
from cantata_layers.misaki.timing import find_onset, place_words, time_words


def test_words_have_the_times_of_their_phones() -> None:
    words = np.array([[1, 3], [4, 5]])
    timed = time_words(words, np.array([2, 1, 3, 1, 4, 2]), 0.025)
    assert [word.index for word in timed] == [0, 1]
    spans = [(word.start_s, word.end_s) for word in timed]
    np.testing.assert_allclose(spans, [(0.05, 0.15), (0.175, 0.275)])


def test_the_onset_of_a_sound() -> None:
    sound = np.concatenate([np.full(600, 1e-4), np.full(100, -0.5)]).astype(np.float32)
    assert find_onset(sound) == 600
    assert find_onset(np.zeros(100, np.float32)) == 0


def test_the_first_word_begins_where_the_sound_does() -> None:
    spoken = (WordTiming(0, 0.6, 0.9), WordTiming(1, 1.05, 1.5))
    slow = place_words(spoken, onset_s=0.3, lead_s=0.25)
    np.testing.assert_allclose(
        [(word.start_s, word.end_s) for word in slow], [(0.05, 0.575), (0.725, 1.175)]
    )
    usual = place_words(spoken, onset_s=0.55, lead_s=0.0)
    assert usual[0].start_s == pytest.approx(0.525)
    assert place_words((), 0.3, 0.2) == ()


def test_a_word_ends_with_the_next_or_with_its_sound() -> None:
    words = (WordTiming(0, 0.1, 0.3), WordTiming(1, 0.35, 0.6), WordTiming(2, 0.9, 1.2))
    ends = [word.end_s for word in place_words(words, onset_s=0.025, lead_s=0.0)]
    np.testing.assert_allclose(ends, [0.275, 0.525, 1.125])
    audible = np.arange(24) < 20  # of 50 ms
    audible[9:16] = False
    ends = [word.end_s for word in place_words(words, 0.025, 0.0, audible, 0.05)]
    np.testing.assert_allclose(ends, [0.275, 0.45, 1.0])
