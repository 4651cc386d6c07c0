"""What an answer's readers are told: thoughts, words, calls, and whose tokens count."""

from __future__ import annotations

from collections.abc import Sequence

from cantata.contract.chat_service import TextDelta
from cantata.contract.data.chat import CallStarted, Thought
from cantata.pipeline.output_parser import OutputParser, ParsedDelta


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


def told(parser: OutputParser, *pieces: str) -> list[ParsedDelta]:
    last = len(pieces) - 1
    return [
        event
        for number, piece in enumerate(pieces)
        for event in parser.read(piece, 1, last=number == last)
    ]


def test_plain_text_is_told_as_it_comes() -> None:
    assert told(OutputParser(None, None), "a", "", "b") == [
        *(TextDelta("a", 1), TextDelta("", 1), TextDelta("b", 1))
    ]


def test_tokens_are_the_thoughts_until_it_has_ended() -> None:
    assert told(OutputParser(Brackets(), None), "", "(", "a", ")b", "c") == [
        Thought("", 2),
        Thought("", 1),
        Thought("a", 0),
        TextDelta("", 1),
        TextDelta("b", 0),
        TextDelta("", 1),
        *(TextDelta("c", 0), TextDelta("!", 0)),
    ]


def test_what_is_never_known_to_be_a_thought_is_text() -> None:
    assert told(OutputParser(Brackets(), None), "", "") == [TextDelta("", 2), TextDelta("!", 0)]


def test_calls_are_found_behind_the_thought_only() -> None:
    events = told(OutputParser(Brackets(), Capitals()), "(A)", "bC")
    assert [event for event in events if not isinstance(event, TextDelta) or event.text] == [
        *(Thought("A", 0), TextDelta("b", 0), CallStarted("C")),
        *(TextDelta("!", 0), TextDelta(".", 0)),
    ]
