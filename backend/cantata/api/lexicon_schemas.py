"""Bodies of the routes of lexicons."""

from __future__ import annotations

from typing import Literal

from cantata.api.schemas import WireModel


class LexiconEntryObject(WireModel):
    """How a word is said."""

    grapheme: str
    alias: str
    """Empty: by `phones`."""
    phones: str
    """IPA."""


class LexiconObject(WireModel):
    """A lexicon; `entries` only where one is asked for."""

    object: Literal["lexicon"] = "lexicon"
    id: str
    name: str
    description: str
    created_at: int
    """Unix time."""
    entry_count: int
    entries: list[LexiconEntryObject] | None = None


class LexiconList(WireModel):
    """GET /v1/lexicons; the oldest first."""

    lexicons: list[LexiconObject]


class DeletedLexicon(WireModel):
    """The answer to DELETE /v1/lexicons/{name}."""

    object: Literal["lexicon.deleted"] = "lexicon.deleted"
    id: str
    deleted: Literal[True] = True
