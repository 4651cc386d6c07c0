"""The tests are effective: a fault anywhere in the recognizer fails the one named beside it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cantata_bench.transcription.run import count_errors
from cantata_models.whisper.tests import (
    test_attempts,
    test_spoken,
    test_weights,
    test_word_times,
    test_words,
)
from cantata_models.whisper.tests.spoken import spoken_sentences
from source_faults import Mutant, injected

WHISPER = "cantata_models.whisper"
MODULES = [
    f"{WHISPER}.{name}"
    for name in (
        "training.quantize_weights",
        "checkpoint",
        "words",
        "word_times",
        "request_builder",
        "decoding",
        "recognizer",
    )
]
TESTS = (test_attempts, test_spoken, test_weights, test_word_times, test_words)
FAILURES = (AssertionError, ValueError, KeyError, IndexError, RuntimeError, RuntimeWarning)
"""How tests fail: an import or a name that does not exist is no fault of this kind."""
Check = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Fault:
    """One, and the test that it fails."""

    module: str
    right: str
    wrong: str
    check: Check


def _check_words(text: str, *words: str, code: str = "en") -> Check:
    def check() -> None:
        assert test_words.words_of(test_attempts.load_vocabulary(), text, code) == list(words)

    return check


def _with_vocabulary(name: str, module: ModuleType = test_words, *more: Any) -> Check:
    def check() -> None:
        getattr(module, name)(test_attempts.load_vocabulary(), *more)

    return check


def _check_wide() -> None:
    test_word_times.test_a_wide_character_and_a_digit_take_the_time_of_several_letters("猫")


def _check_sentence() -> None:
    """As `test_spoken` does with all of them."""
    spoken = spoken_sentences()[0]
    heard = test_spoken.hear(spoken.sound)
    words, errors = count_errors(spoken.text, heard.text)
    assert errors <= 0.05 * words
    late = test_spoken.late_starts(spoken, heard)
    assert np.mean(np.abs(late) <= test_spoken.CLOSE_S) >= 0.8
    assert abs(np.median(late)) < 0.04
    assert heard.avg_logprob is not None
    assert heard.avg_logprob > -1


def _check_quote() -> None:
    _check_words("彼“猫", "彼", "“猫", code="ja")()


def _check_tags() -> None:
    vocabulary = test_attempts.load_vocabulary()
    vocabulary.is_multilingual = True
    assert vocabulary.find_code("jv-ID") == "jw"
    assert vocabulary.tag("jw") == "jv"


_GREEDY_LOOPS = "test_a_loop_in_a_long_window_is_not_heard_twice_in_the_same_way"
_ROOM = "test_a_text_has_the_room_of_fast_speech"
_LOOPS_ALONE = "test_of_loops_alone_the_likeliest_counts"
_SURE = "test_no_speech_counts_only_if_the_words_are_unlikely"

FAULTS = (
    Fault("checkpoint", '{"jw": "jv"}', '{"jv": "jw"}', _check_tags),
    Fault(
        "checkpoint",
        "return get_token_bytes(self._tokenizer, token)",
        "return get_token_bytes(self._tokenizer, token + 1)",
        _with_vocabulary("test_the_bytes_of_tokens_are_those_of_the_text"),
    ),
    Fault(
        "checkpoint",
        "[-_MAX_PROMPT_TOKENS:]",
        "[:]",
        _with_vocabulary(_ROOM, test_attempts, 30.0, "And so on, and so forth. " * 90),
    ),
    Fault(
        "checkpoint",
        "[self._id(_START), self._id(_PLAIN)]",
        "[self._id(_START)]",
        _with_vocabulary("test_marks_stand_before_the_text"),
    ),
    Fault(
        "words",
        "rows.setdefault(number, row)",
        "rows[number] = row",
        test_words.test_a_token_begins_at_its_first_row,
    ),
    Fault(
        "words",
        "FRAME_S = 0.02",
        "FRAME_S = 0.01",
        test_words.test_a_token_begins_at_its_first_row,
    ),
    Fault(
        "words",
        "max(last, rows.get(number, last))",
        "rows.get(number, 0)",
        test_words.test_a_token_begins_at_its_first_row,
    ),
    Fault(
        "words",
        "if _REPLACEMENT not in text:",
        "if text:",
        _check_words("猫が好き。", "猫", "が", "好", "き。", code="ja"),
    ),
    Fault("words", 'in ("Ps", "Pi")', 'in ("Ps",)', _check_quote),
    Fault(
        "words",
        "piece.is_spoken and words[-1].is_spoken",
        "piece.is_spoken",
        _check_words("... and so", "... and", "so"),
    ),
    Fault(
        "words",
        "[word.tokens[0].start_s for word in words[1:]]",
        "[word.tokens[-1].start_s for word in words[:-1]]",
        _with_vocabulary("test_times_and_probabilities_of_words"),
    ),
    Fault(
        "word_times",
        "\n_LATE_S = 0.17",
        "\n_LATE_S = 0.05",
        test_word_times.test_a_jump_is_late_and_more_so_after_a_short_word,
    ),
    Fault(
        "word_times",
        "_LATE_S - _LESS_LATE_S * min(_count_letters(earlier), _MAX_LETTERS)",
        "_LATE_S",
        test_word_times.test_a_jump_is_late_and_more_so_after_a_short_word,
    ),
    Fault(
        "word_times",
        "weights[:-1] * lengths[:-1] - weights[1:]",
        "weights[:-1] * lengths[:-1] + weights[1:]",
        _check_wide,
    ),
    Fault(
        "word_times",
        'or east_asian_width(one) in "WF" else 1',
        "else 1",
        _check_wide,
    ),
    Fault(
        "word_times",
        "before[first].end_s - _ONSET_S",
        "before[first].start_s",
        test_word_times.test_words_begin_where_sound_does_and_end_at_pauses,
    ),
    Fault(
        "word_times",
        "max(loud - _BELOW_LOUD_DB, noise)",
        "loud - _BELOW_LOUD_DB",
        test_word_times.test_pauses_are_found_above_noise_and_closures_are_none,
    ),
    Fault(
        "word_times",
        "_PAUSE_S = 0.1\n",
        "_PAUSE_S = 0.02\n",
        test_word_times.test_pauses_are_found_above_noise_and_closures_are_none,
    ),
    Fault(
        "word_times",
        "np.maximum.accumulate(np.clip(starts, 0.0, seconds))",
        "starts",
        test_word_times.test_times_are_in_order_and_within_the_window,
    ),
    Fault(
        "word_times",
        "_LATER_BY_MARK_S = 0.05",
        "_LATER_BY_MARK_S = 0.0",
        test_word_times.test_a_jump_is_later_behind_a_mark_and_to_a_word_of_several_tokens,
    ),
    Fault(
        "word_times",
        "min(len(word.tokens), _MAX_TOKENS)",
        "min(len(earlier.tokens), _MAX_TOKENS)",
        test_word_times.test_a_jump_is_later_behind_a_mark_and_to_a_word_of_several_tokens,
    ),
    Fault(
        "word_times",
        "_LAST_LENGTH = 1.5",
        "_LAST_LENGTH = 0.5",
        test_word_times.test_the_last_word_before_a_pause_takes_longer,
    ),
    Fault(
        "recognizer",
        "list(dict.fromkeys(exact))",
        "exact",
        _with_vocabulary(_GREEDY_LOOPS, test_attempts),
    ),
    Fault(
        "decoding",
        "max(2 * self.max_tokens, len(self.prompt) + self.max_tokens)",
        "len(self.prompt) + self.max_tokens",
        _with_vocabulary(_ROOM, test_attempts, 20.0, ""),
    ),
    Fault(
        "recognizer", "return max(", "return min(", _with_vocabulary(_LOOPS_ALONE, test_attempts)
    ),
    Fault(
        "recognizer",
        "return not last.is_loop",
        "return (not last.is_loop and last.avg_logprob >= _MIN_LOGPROB)",
        _with_vocabulary("test_what_is_unlikely_is_not_heard_anew", test_attempts),
    ),
    Fault(
        "recognizer",
        "if not any(character.isalnum() for character in self.text):",
        "if not self.text:",
        _with_vocabulary("test_marks_alone_are_no_words", test_attempts),
    ),
    Fault(
        "recognizer",
        "self.no_speech_prob > _NO_SPEECH and ",
        "",
        _with_vocabulary("test_what_is_unlikely_is_not_heard_anew", test_attempts),
    ),
    Fault(
        "recognizer",
        " and self.avg_logprob < _MIN_LOGPROB",
        "",
        _with_vocabulary(_SURE, test_attempts),
    ),
    Fault(
        "recognizer",
        "if token.start_s >= seconds:",
        "if token.start_s > 2 * seconds:",
        _with_vocabulary("test_words_after_the_sounds_end_are_dropped", test_attempts),
    ),
    Fault(
        "recognizer",
        " or last.text in [one.text for one in earlier]",
        "",
        _with_vocabulary("test_what_comes_out_twice_was_said", test_attempts),
    ),
    Fault(
        "recognizer",
        "_REPEATED_WORDS = 4",
        "_REPEATED_WORDS = 2",
        lambda: test_words.test_loops("I saw it. I saw it.", is_loop=False),
    ),
    Fault(
        "decoding",
        "padded[: len(sound)] = sound[: len(padded)]",
        "padded[-len(sound) :] = sound[: len(padded)]",
        _check_sentence,
    ),
    Fault("recognizer", "words=place_words(words, hearing.sound)", "words=words", _check_sentence),
    Fault(
        "training.quantize_weights",
        "np.rint(rows",
        "np.trunc(rows",
        test_weights.test_values_are_rounded,
    ),
    Fault(
        "training.quantize_weights",
        "np.where(largest == 0, np.float32(127), largest)",
        "largest",
        test_weights.test_a_row_of_zeros_and_an_alias,
    ),
)


@contextmanager
def rebound() -> Iterator[None]:
    """The tests use the modules that are imported now."""
    with pytest.MonkeyPatch.context() as patch:
        for test in TESTS:
            for name, value in list(vars(test).items()):
                module = getattr(value, "__module__", None)
                if module in MODULES:
                    patch.setattr(test, name, getattr(sys.modules[module], name))
        test_spoken._load.cache_clear()
        yield
    test_spoken._load.cache_clear()


def describe(fault: Fault) -> str:
    return f"{fault.module}: {fault.wrong}"


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("fault", FAULTS, ids=describe)
def test_a_test_notices(fault: Fault) -> None:
    for module in MODULES:
        importlib.import_module(module)
    unused: Callable[[Path], None] = lambda folder: None  # noqa: E731
    mutant = Mutant(f"{WHISPER}.{fault.module}", fault.right, fault.wrong, unused)
    with injected(mutant, MODULES), rebound(), pytest.raises(FAILURES):
        fault.check()


def test_without_a_fault_they_pass() -> None:
    for module in MODULES:
        importlib.import_module(module)
    with rebound():
        for check in {fault.check for fault in FAULTS}:
            check()
