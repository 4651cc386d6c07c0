"""Whether there is anything to say in a text."""

from __future__ import annotations

from cantata.contract.data.errors import InvalidRequest


def can_be_spoken(text: str) -> bool:
    """Whether a text has a letter or a digit, of whatever language."""
    return any(character.isalnum() for character in text)


def check_speakable(text: str) -> None:
    """Refuse a text of marks alone: a model would say anything.

    Raises:
        InvalidRequest: names the field `input`.
    """
    if not can_be_spoken(text):
        raise InvalidRequest("the text holds nothing that can be spoken", "input")
