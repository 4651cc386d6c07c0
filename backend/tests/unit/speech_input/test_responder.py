"""The rules that answer without a network."""

from __future__ import annotations

from datetime import datetime

import pytest

from cantata.speech_input.chat import SILENT, UNINTELLIGIBLE, ChatMessage, answer_to

NOW = datetime(2024, 5, 17, 9, 5)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("the sky is blue", "You said: the sky is blue."),
        ("The sky is blue!", "You said: The sky is blue."),
        ("what time is it", "It is 09:05."),
        ("who are you", "a small set of rules in this server, not a language model"),
        ("hello there", "a small set of rules in this server, not a language model"),
        (UNINTELLIGIBLE, "Please say that again."),
        ("", "Please say that again."),
        (SILENT, "Are you still there?"),
        ("word " * 1000, "You said: " + "word " * 29 + "word."),
    ],
)
def test_it_answers_the_last_thing_that_was_said(said: str, answer: str) -> None:
    before = [ChatMessage("user", "something else"), ChatMessage("assistant", "An answer.")]
    assert answer in answer_to([*before, ChatMessage("user", said)], NOW)


def test_nothing_said_is_nothing_understood() -> None:
    assert "Please say that again." in answer_to([ChatMessage("system", "Be kind.")], NOW)
