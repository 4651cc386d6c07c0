"""Reads lexicons of W3C's Pronunciation Lexicon Specification 1.0.

Files come from clients: declarations of types and entities are refused, and nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from cantata.contract.data.errors import InvalidLexicon
from cantata.contract.data.request import LexiconEntry
from cantata.text.phone_alphabets import to_ipa

MAX_ENTRIES = 10_000
MAX_CHARACTERS = 200
"""Longest grapheme, alias or phones of a word."""


def read_pls(data: bytes) -> tuple[LexiconEntry, ...]:
    """The entries of a file, one for each grapheme: the first of its pronunciations.

    An alias that is itself a grapheme of the file is read as that one.

    Raises:
        InvalidLexicon: no such file, too many entries, phones that are none, or aliases that lead
            to each other; says where and what is valid.
    """
    try:
        root = ElementTree.fromstring(data, forbid_dtd=True)
    except DefusedXmlException as error:
        raise InvalidLexicon(
            "the lexicon declares a document type or entities, which are not read", "file"
        ) from error
    except (ParseError, ValueError, LookupError) as error:
        raise InvalidLexicon(f"the lexicon is not XML: {error}", "file") from error
    if _name(root) != "lexicon":
        raise InvalidLexicon(
            f"the file is a <{_name(root)[:40]}>; valid is a <lexicon> of PLS 1.0", "file"
        )
    entries: dict[str, LexiconEntry] = {}
    for number, lexeme in enumerate((e for e in root if _name(e) == "lexeme"), start=1):
        for entry in _read_lexeme(lexeme, number, root.get("alphabet", "ipa")):
            entries.setdefault(entry.grapheme, entry)
            if len(entries) > MAX_ENTRIES:
                raise InvalidLexicon(f"a lexicon has at most {MAX_ENTRIES} entries", "file")
    if not entries:
        raise InvalidLexicon("the lexicon has no <lexeme> with a <grapheme>", "file")
    return tuple(_follow(entry, entries) for entry in entries.values())


def _read_lexeme(lexeme: Element, number: int, alphabet: str) -> Iterator[LexiconEntry]:
    graphemes = [_text(one) for one in lexeme if _name(one) == "grapheme"]
    said = next((one for one in lexeme if _name(one) in ("phoneme", "alias")), None)
    where = f"lexeme {number} ({', '.join(graphemes)[:60]})"
    if said is None or not _text(said) or not all(graphemes):
        raise InvalidLexicon(
            f"{where}: needs a <grapheme>, and a <phoneme> or an <alias>, none of them empty",
            "file",
        )
    if max(map(len, (*graphemes, _text(said)))) > MAX_CHARACTERS:
        raise InvalidLexicon(f"{where}: has more than {MAX_CHARACTERS} characters", "file")
    if _name(said) == "alias":
        yield from (LexiconEntry(one, alias=_text(said)) for one in graphemes)
        return
    try:
        phones = to_ipa(_text(said), said.get("alphabet", alphabet).lower())
    except ValueError as error:
        raise InvalidLexicon(f"{where}: {error}", "file") from error
    yield from (LexiconEntry(one, phones=phones) for one in graphemes)


def _follow(entry: LexiconEntry, entries: dict[str, LexiconEntry]) -> LexiconEntry:
    """An entry as its alias says, if that is an entry."""
    met, found = [entry.grapheme], entry
    while found.alias in entries:
        if found.alias in met:
            raise InvalidLexicon(f"aliases lead to each other: {' -> '.join(met)[:200]}", "file")
        met.append(found.alias)
        found = entries[found.alias]
    return LexiconEntry(entry.grapheme, found.alias, found.phones)


def _name(element: Element) -> str:
    """Without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _text(element: Element) -> str:
    return " ".join((element.text or "").split())
