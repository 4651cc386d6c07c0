"""Beginnings of unfinished sentences that are spoken by themselves, and when."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantata.api.speech.opening_timer import PATIENCE_S, plan_opening
from cantata.text.openings import OpeningEnd, find_opening

CLAUSE, PHRASE = OpeningEnd.CLAUSE, OpeningEnd.PHRASE


def first_opening(text: str, end: OpeningEnd) -> str | None:
    """The first one while a text arrives letter by letter."""
    for length in range(len(text) + 1):
        found = find_opening(text[:length], end)
        if found is not None:
            return text[found[0].start : found[0].end]
    return None


@pytest.mark.parametrize(
    ("text", "clause", "phrase"),
    [
        ("The capital of France is Paris.", None, None),
        (
            "The sea is a vast and mysterious realm that exists beyond the boundaries",
            "The sea is a vast and mysterious realm",
            "The sea is a vast and mysterious realm",
        ),
        (
            "The answer to this question lies in the intricate dance of light and color.",
            None,
            "The answer to this question lies",
        ),
        ("The sky appears blue because of a phenomenon", *["The sky appears blue"] * 2),
        ("We met Dr. Smith, who lives in St. Louis, and", *["We met Dr. Smith,"] * 2),
        ("He likes citrus fruit, e.g., limes, and", *["He likes citrus fruit,"] * 2),
        ("He would eat sour fruit e.g., limes or", None, None),
        ("It was signed on July 4, 1776, by all", *["It was signed on July 4, 1776,"] * 2),
        ("About 1,234.56 dollars were paid to me", None, "About 1,234.56 dollars were paid"),
        ("The time was 12:30 when it", *["The time was 12:30"] * 2),
        ("Yes, of course, I can help you, if", *["Yes, of course, I can help you,"] * 2),
        ("All of it (that is, one, two, three) is", None, None),
        (
            "Call `f(a, b, c, d)` with two numbers, and",
            "Call `f(a, b, c, d)` with two numbers,",
            "Call `f(a, b, c, d)`",
        ),
        ("```python\nx = f(1, 2, 3, four)\nprint(x, y, z, zz)\n", None, None),
        ("**One, two, three, four, five,** then go", *["**One, two, three, four, five,**"] * 2),
        ("| a, b, c, d, e | f, g, h, i |", None, None),
        ("- Heat the oven well\n- Mix flour", *["- Heat the oven well"] * 2),
        ("It is such a good book, and I", *["It is such a good book,"] * 2),
        (
            "The bakery on the corner is a classic example",
            None,
            "The bakery on the corner",
        ),
        (
            "Her old letters show a beautiful example of a style",
            None,
            "Her old letters show a beautiful example",
        ),
        ("I would like a cup of tea", None, None),
        ("I really like old cheese and the wine", *["I really like old cheese"] * 2),
        ("The sea is a vast and mysterious realm", None, None),
        ("One of the people who know it", *["One of the people"] * 2),
        ("This is the same class that he knew", *["This is the same class"] * 2),
        ("We have never ever seen that class before", None, None),
        ("It is [pause 1, s] all well, so", *["It is [pause 1, s] all well,"] * 2),
        ("Das ist eine gute Frage, weil sie", *["Das ist eine gute Frage,"] * 2),
        ("Je ne sais pas mais je", *["Je ne sais pas"] * 2),
        ("No lo he visto porque estaba", *["No lo he visto"] * 2),
        (
            "\u6211\u8ba4\u4e3a\u8fd9\u662f\u4e00\u4e2a\u597d\u95ee\u9898\uff0c\u56e0\u4e3a",
            *["\u6211\u8ba4\u4e3a\u8fd9\u662f\u4e00\u4e2a\u597d\u95ee\u9898\uff0c"] * 2,
        ),
    ],
)
def test_openings(text: str, clause: str | None, phrase: str | None) -> None:
    assert first_opening(text, CLAUSE) == clause
    assert first_opening(text, PHRASE) == phrase


def test_a_comma_behind_a_letter_needs_no_word_behind_it() -> None:
    """A writer of a few words a second would be waited for."""
    assert find_opening("The sea is wide,", CLAUSE) is not None
    assert find_opening("It happened on May 4,", CLAUSE) is None
    assert find_opening("He likes citrus fruit e.g.,", CLAUSE) is None


def test_the_longest_opening_counts() -> None:
    text = "When it rains in the city, people stay at home, but the"
    found = find_opening(text, CLAUSE)
    assert found is not None
    span, rest = found
    assert text[span.start : span.end] == "When it rains in the city, people stay at home,"
    assert text[rest:] == "but the"


@given(st.lists(st.sampled_from([*'ab1 ,-:;()*`[]<>\n"|', "and the ", "that ", "in "])))
def test_openings_lose_nothing(pieces: list[str]) -> None:
    text = "".join(pieces)
    for end in OpeningEnd:
        found = find_opening(text, end)
        if found is not None:
            span, rest = found
            assert text[span.start : span.end].strip()
            assert not (text[: span.start] + text[span.end : rest]).strip()


@pytest.mark.parametrize(
    "text", [", " * 50_000, "a b, " * 20_000, "(a, " * 20_000, " that a" * 20_000, "\n a" * 30_000]
)
def test_long_text_of_any_kind_is_searched_at_once(text: str) -> None:
    def cost_s(part: str) -> float:
        began = time.thread_time()
        find_opening(part, PHRASE)
        return time.thread_time() - began

    limit_s = 10 * min(cost_s(text[: len(text) // 4]) for _ in range(3)) + 0.05
    assert any(cost_s(text) < limit_s for _ in range(3))


def test_a_fast_writer_is_given_time_to_complete_the_sentence() -> None:
    plan = plan_opening("The sky appears blue because of a", 7.0, 0.0)
    assert plan is not None
    assert plan.due_s == 7.0 + PATIENCE_S[CLAUSE]


def test_sound_that_is_still_heard_is_time_to_complete_the_sentence() -> None:
    plan = plan_opening("The sky appears blue because of a", 7.0, 9.5)
    assert plan is not None
    assert plan.due_s == 9.5


def test_a_worse_end_takes_more_patience() -> None:
    text = "The answer to this question lies in the intricate"
    plan = plan_opening(text, 7.0, 0.0)
    assert plan is not None
    assert plan.due_s == 7.0 + PATIENCE_S[PHRASE] > 7.0 + PATIENCE_S[CLAUSE]
    assert text[plan.rest :] == "in the intricate"
    assert plan_opening("The answer", 7.0, 0.0) is None
