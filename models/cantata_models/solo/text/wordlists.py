"""Word tables as readable text."""

from __future__ import annotations


def word_list(text: str) -> tuple[str, ...]:
    """Splits a literal at white space."""
    return tuple(text.split())


def word_set(text: str) -> frozenset[str]:
    """Splits a literal at white space into a set."""
    return frozenset(text.split())


def table(text: str) -> dict[str, str]:
    """Reads "key: value" lines and skips empty ones."""
    lines = (line.strip() for line in text.strip().split("\n"))
    return dict(line.split(": ", 1) for line in lines if line)
