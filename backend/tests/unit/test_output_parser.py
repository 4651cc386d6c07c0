"""What an answer's readers are told: thoughts, words, calls, and whose tokens count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cantata.contract.chat_service import AnswerDelta
from cantata.contract.data.chat import CallStarted, Thought
from cantata.pipeline.output_parser import (
    MarkedOutput,
    OutputParser,
    ParsedDelta,
    ParsedOutput,
)


class Brackets:
    """A thought stands in brackets at the beginning; a text without them has none."""

    def __init__(self) -> None:
        self.thinking: bool | None = None

    def read(self, text: str) -> Sequence[Thought | str]:
        told: list[Thought | str] = []
        for letter in text:
            if self.thinking is None:
                self.thinking = letter == "("
                if not self.thinking:
                    told.append(letter)
            elif self.thinking and letter == ")":
                self.thinking = False
            else:
                told.append(Thought(letter, 0) if self.thinking else letter)
        return told

    def end(self) -> Sequence[Thought | str]:
        return ["!"]


class Capitals:
    """A capital letter is a call."""

    def read(self, text: str) -> Sequence[str | CallStarted]:
        return [CallStarted(letter) if letter.isupper() else letter for letter in text]

    def end(self) -> Sequence[str | CallStarted]:
        return ["."]


class Letters:
    """Tokens are letters' numbers."""

    def read(self, tokens: NDArray[np.int32]) -> str:
        return "".join(map(chr, tokens))

    def end(self) -> str:
        return ""


class Capital:
    """Capitals are a thought; a call follows the last words."""

    thinking = False

    def read(
        self, tokens: NDArray[np.int32], *, last: bool
    ) -> Sequence[Thought | str | CallStarted]:
        text = "".join(map(chr, tokens))
        self.thinking = text.isupper()
        return [Thought(text, 0) if self.thinking else text, *([CallStarted("f")] if last else [])]


def told(parser: OutputParser, *pieces: str) -> list[ParsedDelta]:
    last = len(pieces) - 1
    return [
        event
        for number, piece in enumerate(pieces)
        for event in parser.read(np.array([*map(ord, piece)], np.int32), last=number == last)
    ]


def test_plain_text_is_told_as_it_comes() -> None:
    assert told(MarkedOutput(Letters(), None, None), "a", "", "b") == [
        *(AnswerDelta("a", 1), AnswerDelta("", 0), AnswerDelta("b", 1))
    ]


def test_tokens_are_the_thoughts_until_it_has_ended() -> None:
    assert told(MarkedOutput(Letters(), Brackets(), None), "", "(", "a", ")b", "c") == [
        Thought("", 1),
        Thought("", 1),
        Thought("a", 0),
        AnswerDelta("", 2),
        AnswerDelta("b", 0),
        AnswerDelta("", 1),
        *(AnswerDelta("c", 0), AnswerDelta("!", 0)),
    ]


def test_what_is_never_known_to_be_a_thought_is_text() -> None:
    events = told(MarkedOutput(Letters(), Brackets(), None), "", "")
    assert events == [AnswerDelta("", 0), AnswerDelta("!", 0)]


def test_calls_are_found_behind_the_thought_only() -> None:
    events = told(MarkedOutput(Letters(), Brackets(), Capitals()), "(A)", "bC")
    assert [event for event in events if not isinstance(event, AnswerDelta) or event.text] == [
        *(Thought("A", 0), AnswerDelta("b", 0), CallStarted("C")),
        *(AnswerDelta("!", 0), AnswerDelta(".", 0)),
    ]


def test_a_model_s_own_parser_says_whose_the_tokens_are() -> None:
    assert told(ParsedOutput(Capital()), "AB", "c") == [
        *(Thought("", 2), Thought("AB", 0)),
        *(AnswerDelta("", 1), AnswerDelta("c", 0), CallStarted("f")),
    ]
