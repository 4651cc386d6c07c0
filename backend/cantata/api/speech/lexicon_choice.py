"""The lexicons of a request: those that it names, and those of its voice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cantata.api.context import ApiContext
from cantata.contract.data.errors import Forbidden, InvalidRequest
from cantata.contract.data.request import LexiconEntry
from cantata.lexicons.store import LexiconStore, StoredLexicon

MAX_LEXICONS = 8
"""Most lexicons that one request may name."""

Entries = tuple[LexiconEntry, ...]


def lexicon_store(context: ApiContext) -> LexiconStore:
    """The store.

    Raises:
        Forbidden: this server keeps no lexicons.
    """
    if context.lexicons is None:
        raise Forbidden("this server keeps no lexicons")
    return context.lexicons


def choose_lexicons(context: ApiContext, names: Sequence[str], voice: str) -> Entries:
    """The entries of the named lexicons, in this order, then of the voice's own.

    Raises:
        LexiconNotFound: one is not kept here.
        InvalidRequest: too many.
    """
    if len(names) > MAX_LEXICONS:
        raise InvalidRequest(f"a request names at most {MAX_LEXICONS} lexicons", "lexicons")
    named = [lexicon_store(context).find(name) for name in names]
    return _entries([*named, *_defaults(context, voice)])


def _defaults(context: ApiContext, voice: str) -> Iterable[StoredLexicon]:
    """Lexicons that the operator has given to all voices, or to this one, if not deleted since."""
    wanted = [name for who, name in context.settings.lexicons if who in ("", voice)]
    kept = context.lexicons.lexicons if context.lexicons and wanted else ()
    return [one for name in wanted for one in kept if name in (one.id, one.name)]


def _entries(lexicons: Iterable[StoredLexicon]) -> Entries:
    return tuple(entry for lexicon in lexicons for entry in lexicon.entries)
