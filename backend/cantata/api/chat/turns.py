"""A conversation whose next message is to be a picture: its turns, and the prompt at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cantata.contract.data.chat import ImagePart, Message, TextPart
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.pictures import Turn


def build_turns(messages: Sequence[Message]) -> list[Turn]:
    """Texts with the pictures in front of each, in order; the prompt last.

    Pictures behind the last text belong to it: many clients send the words first.

    Raises:
        InvalidRequest: the last message has no words.
    """
    *earlier, last = messages
    turns = [turn for message in earlier for turn in _turns(message)]
    asked = list(_turns(last))
    behind = asked.pop() if asked and not asked[-1].text else None
    if not asked:
        where = f"messages[{len(earlier)}].content"
        raise InvalidRequest(f"{where} has no text; say which picture to draw", where)
    if behind is not None:
        prompt = asked[-1]
        asked[-1] = Turn(prompt.role, (*prompt.pictures, *behind.pictures), prompt.text)
    return [*turns, *asked]


def _turns(message: Message) -> Iterator[Turn]:
    """The turns of one message; only the last may have no text."""
    pictures: list[ImagePart] = []
    for part in message.parts:
        if isinstance(part, ImagePart):
            pictures.append(part)
        elif isinstance(part, TextPart) and part.text:
            yield Turn(message.role, tuple(one.pixels for one in pictures), part.text)
            pictures = []
    if pictures:
        yield Turn(message.role, tuple(one.pixels for one in pictures), "")
