"""Times of characters from times of words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantata.api.adapters.elevenlabs_messages import CharacterClock, build_socket_alignment


def test_words_are_interpolated_and_gaps_belong_to_what_stands_in_them() -> None:
    clock = CharacterClock("Oh, no!", start_s=10.0)
    told = (
        clock.take_until([(0, 2, 0.0, 0.4)])
        + clock.take_until([(4, 6, 0.6, 1.0)])
        + clock.take_rest(1.2)
    )
    assert "".join(one.character for one in told) == "Oh, no! "
    starts = [round(one.start_s, 3) for one in told]
    assert starts == [10.0, 10.2, 10.4, 10.5, 10.6, 10.8, 11.0, 11.2]
    assert told[-1].end_s == pytest.approx(11.2)


def test_a_number_that_is_read_as_several_words_is_aligned_once() -> None:
    clock = CharacterClock("21 cats")
    told = clock.take_until([(0, 2, 0.0, 0.3), (0, 2, 0.3, 0.6), (3, 7, 0.7, 1.1)])
    assert "".join(one.character for one in told) == "21 cats"


def test_without_word_times_there_are_no_character_times() -> None:
    assert CharacterClock("hello").take_rest(1.0) == []


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0, 1), st.floats(0, 1)), min_size=1))
def test_times_never_go_back_and_durations_add_up(words: list[tuple[int, float, float]]) -> None:
    """What Pipecat does: it adds the span of each message to its clock."""
    text = " ".join("a" * length for length, _, _ in words)
    clock, place, now_s = CharacterClock(text), 0, 0.0
    since_s, clock_ms, told = 0.0, 0, ""
    for length, gap_s, word_s in words:
        start_s, now_s = now_s + gap_s, now_s + gap_s + word_s
        characters = clock.take_until([(place, place + length, start_s, now_s)])
        place += length + 1
        message = build_socket_alignment(characters, since_s)
        assert all(duration >= 0 for duration in message.char_durations_ms)
        assert message.char_start_times_ms == sorted(message.char_start_times_ms)
        assert message.char_start_times_ms[0] >= 0
        clock_ms += message.char_start_times_ms[-1] + message.char_durations_ms[-1]
        since_s, told = characters[-1].end_s, told + "".join(message.chars)
        assert clock_ms == round(now_s * 1000)
    assert told == text
