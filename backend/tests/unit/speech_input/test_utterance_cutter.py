"""What of an utterance a recognizer gets, and when it is asked, by given probabilities."""

from __future__ import annotations

import numpy as np

from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.utterance_cutter import SoundSegment, UtteranceCutter
from cantata.speech_input.vad import WINDOW

WINDOW_S = WINDOW / HEARD_RATE


def pieces(*probabilities: float) -> list[tuple[Heard, float]]:
    """Windows with these probabilities; each has its number as samples."""
    return [(np.full(WINDOW, number, np.int16), one) for number, one in enumerate(probabilities)]


def take(cutter: UtteranceCutter, given: list[tuple[Heard, float]]) -> list[SoundSegment]:
    return [passage for sound, one in given for passage in cutter.take(sound, one)]


def numbers(passages: list[SoundSegment]) -> list[int]:
    """Of the windows, in order."""
    return [int(one.sound[i]) for one in passages for i in range(0, len(one.sound), WINDOW)]


def test_words_are_asked_for_when_a_pause_begins_and_its_rest_is_held_back() -> None:
    cutter = UtteranceCutter(30, 0.5)
    passages = take(cutter, pieces(*[0.9] * 10, *[0.1] * 12))
    assert numbers(passages) == list(range(13))
    assert [one.is_pause for one in passages] == [False] * 12 + [True]
    assert passages[0].begins
    assert not any(one.begins for one in passages[1:])
    # The speaker goes on: what was held back comes first.
    more = take(cutter, pieces(0.9))
    assert len(more) == 10
    assert not any(one.begins or one.is_pause for one in more)
    assert [one.is_pause for one in take(cutter, pieces(0.1, 0.1, 0.1, 0.1))] == [
        False,
        False,
        True,
    ]


def test_a_click_begins_nothing_and_most_silence_before_speech_is_left_out() -> None:
    cutter = UtteranceCutter(30, 0.5)
    assert take(cutter, pieces(*[0.1] * 40, 0.9, *[0.1] * 5)) == []
    assert cutter.is_quiet
    passages = take(cutter, pieces(0.9, 0.9))
    assert len(passages) == 11, "ten windows before the one at which the speech was certain"
    assert not cutter.is_quiet


def test_speech_that_whoever_detects_turns_passes_on_begins_at_once() -> None:
    cutter = UtteranceCutter(30, 0.5)
    onset = np.zeros(9 * WINDOW, np.int16)
    (passage,) = cutter.take(onset, 1.0)
    assert passage.begins
    assert len(passage.sound) == len(onset)
    # Down to a little below the threshold it goes on.
    assert len(cutter.take(np.zeros(WINDOW, np.int16), 0.36)) == 1
    assert not cutter.is_quiet


def test_after_a_long_pause_another_window_begins() -> None:
    cutter = UtteranceCutter(30, 0.5)
    take(cutter, pieces(*[0.9] * 10, *[0.1] * round(1.6 / WINDOW_S)))
    passages = take(cutter, pieces(0.9))
    assert passages[0].begins
    assert len(passages) == 11, "of a long silence, the end is kept"
    # After 12 s of speech, a third of a second suffices.
    take(cutter, pieces(*[0.9] * round(12 / WINDOW_S), *[0.1] * 11))
    assert take(cutter, pieces(0.9))[0].begins


def test_without_pauses_a_full_window_is_cut_where_it_is_quietest() -> None:
    cutter = UtteranceCutter(3.2, 0.5)
    likely = [0.9] * 100
    likely[78:83] = [0.4] * 5
    given = pieces(*likely, 0.9)
    passages = take(cutter, given)
    cut = passages[-1]
    assert cut.begins
    assert cut.before is not None
    assert len(cut.before) == 80 * WINDOW
    assert numbers([cut]) == list(range(80, 101))
    whole = np.concatenate([cut.before, cut.sound])
    np.testing.assert_array_equal(whole, np.concatenate([sound for sound, _ in given]))
    # The next window is as long as any.
    more = take(cutter, pieces(*[0.9] * 79))
    assert not any(one.begins for one in more)
    assert take(cutter, pieces(0.9))[0].before is not None
