"""What stops an answer, by words and length; and how loud the speaker's own speech is."""

from __future__ import annotations

import numpy as np
import pytest

from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.speech_input.interruptions import (
    SpeechEvidence,
    expect_short_words,
    find_content,
    is_interruption,
)
from cantata.speech_input.speech_level import SpeechLevel
from cantata.speech_input.vad import WINDOW


def heard(text: str, speech_s: float, avg_logprob: float | None = -0.3) -> SpeechEvidence:
    transcript = Transcript(text, avg_logprob=avg_logprob)
    return SpeechEvidence(speech_s, transcript, longest_run_s=speech_s)


@pytest.mark.parametrize(
    ("text", "speech_s"),
    [
        ("Stop.", 0.4),
        ("No,", 0.3),
        ("Wait, wait.", 0.5),
        ("What about", 0.7),
        ("One moment.", 0.4),
        ("Yeah, but", 0.5),
        ("Okay, I want the blue one", 1.2),
        ("Don\N{RIGHT SINGLE QUOTATION MARK}t", 0.3),
        ("Thursday would", 0.7),
        ("Mm-hm. Play jazz", 0.9),
        ("That's wrong.", 0.8),
    ],
)
def test_words_that_take_the_turn_stop_an_answer(text: str, speech_s: float) -> None:
    assert is_interruption(heard(text, speech_s))


@pytest.mark.parametrize(
    "text",
    ["Mm-hm.", "Uh-huh.", "Yeah, yeah.", "Oh, I see.", "That's right.", "Okay, got it. Thank you.",
     "Hmm", "I'm hum.", "Mama", "[cough]", "(laughs) ha ha", "How interesting!",
     "Oh, that is lovely.", "Good point.", "Oh, that's brilliant!", "Point taken, me too.",
     "Fine by me.", "I think so too.", "Yes, please go on.", "Oh, no!", "So sweet.", "At him", "",
     "I can imagine.", "I believe it.", "Not bad.", "Is that so?", "I love that.",
     "You don't say."],
)  # fmt: skip
def test_whoever_only_listens_stops_nothing_however_long(text: str) -> None:
    assert not is_interruption(heard(text, 0.5))
    assert not is_interruption(heard(text, 4.0))


def test_one_or_two_words_of_a_hum_do_not_count() -> None:
    assert not is_interruption(heard("Of her.", 0.45))
    assert not is_interruption(heard("Blue", 3.0)), "one word that asks for nothing"
    assert is_interruption(heard("Blue shoes", 0.8))


def test_a_word_that_only_joins_counts_later() -> None:
    """What is heard of the beginnings of "Hm, interesting" and "Hm, that's good"."""
    assert not is_interruption(heard("an interest.", 0.67))
    assert not is_interruption(heard("And that's", 1.5))
    assert is_interruption(heard("The blue", 1.1))


def test_complete_speech_needs_less_where_the_recognizer_is_sure() -> None:
    for text in ("Speak up.", "Take me home.", "I have an idea."):
        brief = heard(text, 0.45, -0.2)
        assert not is_interruption(brief), "more may follow"
        brief.is_complete = True
        assert is_interruption(brief), text
    doubtful = heard("To him.", 0.45, -0.9)
    doubtful.is_complete = True
    assert not is_interruption(doubtful), "a hum"


def test_an_exclamation_begins_like_a_question() -> None:
    """ "What a shame", "How lovely", cut in their middle."""
    for text in ("What", "What a", "How"):
        assert not is_interruption(heard(text, 0.4, -0.2))
    for text in ("What?", "How?"):
        complete = heard(text, 0.4, -0.9)
        complete.is_complete = True
        assert is_interruption(complete), text


def test_a_short_question_stops_an_answer_when_it_is_over() -> None:
    for text in ("Are you there?", "Is that true?", "Did he come?"):
        asked = heard(text, 0.5, -0.2)
        assert not is_interruption(asked), "more may follow"
        asked.is_complete = True
        assert is_interruption(asked), text
    for text in ("Is that right?", "Are okay.", "How really?"):
        passed = heard(text, 0.5, -0.2)
        passed.is_complete = True
        assert not is_interruption(passed), text


def test_a_lone_word_that_stops_may_be_doubted_once_it_is_over() -> None:
    doubted = heard("Cancel.", 0.4, -1.4)
    assert not is_interruption(doubted)
    doubted.is_complete = True
    assert is_interruption(doubted)
    assert not is_interruption(heard("Cancel.", 0.4, -1.6))


def test_a_word_counts_once_however_often_it_is_said() -> None:
    """What recognizers make of laughter."""
    assert not is_interruption(heard("Th- Th- Th- Th-", 0.9))
    assert not is_interruption(heard("Yo, yo, yo!", 0.8))


def test_the_beginning_of_a_word_is_no_other_word() -> None:
    """ "How nice" and "no doubt", cut in their middle."""
    for text in ("How night?", "No die."):
        assert not is_interruption(heard(text, 0.4, -0.8))
        complete = heard(text, 0.4, -0.8)
        complete.is_complete = True
        assert is_interruption(complete)


def test_words_that_the_recognizer_doubts_are_not_used() -> None:
    assert not is_interruption(heard("Stop it now", 1.0, -1.2))
    assert is_interruption(heard("Stop it now", 1.0, None)), "models that tell no probabilities"
    assert is_interruption(heard("Stop it now", 2.6, -1.2)), "long speech in any language"


def test_without_words_the_length_decides() -> None:
    def unheard(speech_s: float, *, has_recognizer: bool) -> SpeechEvidence:
        return SpeechEvidence(speech_s, has_recognizer=has_recognizer, longest_run_s=speech_s)

    assert not is_interruption(unheard(0.5, has_recognizer=False))
    assert is_interruption(unheard(0.8, has_recognizer=False))
    assert not is_interruption(unheard(1.5, has_recognizer=True)), "the words are still to come"
    assert is_interruption(unheard(2.5, has_recognizer=True))


def test_words_from_afar_do_not_count() -> None:
    """A television is understood well, but nobody near has spoken."""
    assert not is_interruption(heard("Stop the car!", 0.0))


def test_content_leaves_phrases_out_as_a_whole() -> None:
    assert find_content("I see. I see the sea") == ["the", "sea"]
    assert find_content("That's great, go on!") == []


def test_the_usual_level_is_learnt_and_quieter_speech_is_far() -> None:
    random = np.random.default_rng(0)

    def speech(db: float) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
        noise = random.standard_normal(WINDOW) * 32768 * 10 ** (db / 20)
        return np.clip(noise, -32768, 32767).astype(np.int16)

    level = SpeechLevel()
    assert level.is_near(speech(-60)), "nothing is known yet"
    for _ in range(100):
        level.learn(speech(-26))
    assert level.is_near(speech(-34))
    assert not level.is_near(speech(-41))
    assert not level.is_near(np.zeros(WINDOW, np.int16))
    for _ in range(1000):
        level.learn(speech(-45))
    assert level.is_near(speech(-50)), "who moves away is followed"


@pytest.mark.parametrize(
    ("windows", "stops"),
    [("n.......", True), ("..nn..........", True), ("n" + "." * 30, False), ("." * 10, False)],
)
def test_a_word_that_falls_off_quickly_is_the_user_s(windows: str, stops: bool) -> None:
    """Voices in the background that a word comes out of are not."""
    assert is_interruption(hear_windows(windows)) == stops


@pytest.mark.parametrize(
    ("windows", "stops"),
    [
        ("." * 200 + "nnnn", True),
        ("." * 200 + "nn.nn", True),
        ("nnn..." * 20, False),
        ("nn..nn..nn..nn..nn..nn..nn..", False),
    ],
)
def test_people_in_the_room_are_only_now_and_then_as_loud_as_the_user(
    windows: str, stops: bool
) -> None:
    """It does not matter how long they have been heard when the user speaks."""
    assert is_interruption(hear_windows(windows)) == stops


def hear_windows(windows: str) -> SpeechEvidence:
    """ "No", in windows of 32 ms in which somebody near (n) or far (.) speaks."""
    evidence = SpeechEvidence(transcript=Transcript("No.", avg_logprob=-0.3))
    for window in windows:
        evidence.add_window(0.032, is_speech=True, is_near=window == "n")
    return evidence


def test_short_words_are_expected_in_english_alone() -> None:
    plain = TranscriptionRequest(prompt="Ada, Grace")
    expected = expect_short_words(plain, ["en"])
    assert expected.prompt.startswith("Ada, Grace Mm-hm.")
    assert "Stop!" in expected.prompt
    assert expect_short_words(TranscriptionRequest("en-GB"), ["de", "en"]).prompt
    for request, languages in [
        (plain, ["de", "en"]),
        (plain, []),
        (TranscriptionRequest("de"), ["de", "en"]),
    ]:
        assert expect_short_words(request, languages) is request
