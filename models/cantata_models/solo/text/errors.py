"""The errors of the text front end."""

from __future__ import annotations


class TextError(ValueError):
    """The text cannot be spoken. The message gives the reason and what is accepted."""


class WordlessText(TextError):
    """The text has no letters that the voice cannot read, but nothing with a sound either."""
