"""The one error of the text front end."""

from __future__ import annotations


class TextError(ValueError):
    """The text cannot be spoken. The message gives the reason and what is accepted."""
