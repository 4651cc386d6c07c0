"""Words that are passed on while somebody speaks."""

from __future__ import annotations

from cantata.contract.data.transcripts import TokenLogprob, Transcript
from cantata.speech_input.agreed_words import AgreedWords


def deltas(*texts: str, last: bool = True) -> list[str]:
    """Of the transcripts of one window."""
    agreed = AgreedWords()
    found = [
        agreed.take(Transcript(text), last and place == len(texts) - 1)
        for place, text in enumerate(texts)
    ]
    return [delta.text for delta in found if delta is not None]


def test_words_are_certain_when_two_transcripts_agree_and_more_follow() -> None:
    assert deltas("The", "The child", "The children walk", "The children walk home.") == [
        "The",
        " children walk home.",
    ]
    assert deltas("The dog", "A dog barks", last=False) == []


def test_marks_and_capitals_make_no_difference_and_the_newer_ones_count() -> None:
    assert deltas("hello.", "Hello, how are", "Hello, how are you?") == ["Hello,", " how are you?"]


def test_what_was_passed_on_is_not_taken_back() -> None:
    assert deltas("one two three", "one two four five", "one six") == ["one two"]


def test_the_next_window_begins_anew_after_a_space() -> None:
    agreed = AgreedWords()
    first = agreed.take(Transcript("One."), True)
    again = agreed.take(Transcript("Two three"), False)
    second = agreed.take(Transcript("Two three."), True)
    assert first is not None
    assert second is not None
    assert (first.text, again, second.text) == ("One.", None, " Two three.")


def test_the_next_window_follows_without_a_space_where_the_language_has_none() -> None:
    agreed = AgreedWords()
    agreed.take(Transcript("\u4f60\u597d", "zh"), True)
    agreed.take(Transcript("\u6211\u662f", "zh"), False)
    delta = agreed.take(Transcript("\u6211\u662f", "zh"), True)
    assert delta is not None
    assert delta.text == "\u6211\u662f"


def test_scripts_without_spaces_have_a_word_for_each_character() -> None:
    assert deltas("\u4f60\u597d", "\u4f60\u597d\u5417\uff1f") == ["\u4f60\u597d\u5417\uff1f"]
    agreed = AgreedWords()
    agreed.take(Transcript("\u4f60\u597d"), False)
    delta = agreed.take(Transcript("\u4f60\u597d\u5417"), False)
    assert delta is not None
    assert delta.text == "\u4f60\u597d"


def test_log_probabilities_are_those_of_the_words() -> None:
    tokens = tuple(
        TokenLogprob(text, tuple(text.encode()), -float(place))
        for place, text in enumerate((" The", " child", "ren", " walk", "."))
    )
    agreed = AgreedWords()
    agreed.take(Transcript("The children", logprobs=tokens[:3]), False)
    first = agreed.take(Transcript("The children walk.", logprobs=tokens), False)
    rest = agreed.take(Transcript("The children walk.", logprobs=tokens), True)
    assert first is not None
    assert rest is not None
    assert (first.text, first.logprobs) == ("The children", tokens[:3])
    assert (rest.text, rest.logprobs) == (" walk.", tokens[3:])
