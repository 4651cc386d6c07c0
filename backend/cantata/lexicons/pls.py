"""Reads and writes lexicons of W3C's Pronunciation Lexicon Specification 1.0.

Files come from clients: declarations of types and entities are refused, and nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from xml.etree.ElementTree import Element, ParseError
from xml.sax.saxutils import escape

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from cantata.contract.data.errors import InvalidLexicon
from cantata.contract.data.request import LexiconEntry
from cantata.text.phone_alphabets import to_ipa

MAX_ENTRIES = 10_000
MAX_BYTES = 16 << 20
"""Of a file; 10,000 entries of the longest need less."""
MAX_CHARACTERS = 200
"""Longest grapheme, alias or phones of a word."""
_NAMESPACE = "http://www.w3.org/2005/01/pronunciation-lexicon"


def read_pls(data: bytes) -> tuple[LexiconEntry, ...]:
    """The entries of a file, one for each grapheme: the first of its pronunciations.

    Raises:
        InvalidLexicon: no such file, too large, too many entries, phones that are none, or aliases
            that lead to each other; says where and what is valid.
    """
    if len(data) > MAX_BYTES:
        raise InvalidLexicon(
            f"the lexicon is larger than {MAX_BYTES >> 20} MiB; at most {MAX_ENTRIES} entries fit",
            "file",
        )
    try:
        root = ElementTree.fromstring(data, forbid_dtd=True)
    except DefusedXmlException as error:
        raise InvalidLexicon(
            "the lexicon declares a document type or entities, which are not read", "file"
        ) from error
    except (ParseError, ValueError, LookupError) as error:
        raise InvalidLexicon(f"the lexicon is not XML: {error}", "file") from error
    if _strip_namespace(root) != "lexicon":
        raise InvalidLexicon(
            f"the file is a <{_strip_namespace(root)[:40]}>; valid is a <lexicon> of PLS 1.0",
            "file",
        )
    alphabet = root.get("alphabet", "ipa")
    lexemes = enumerate((e for e in root if _strip_namespace(e) == "lexeme"), start=1)
    found = (_read_lexeme(lexeme, number, alphabet) for number, lexeme in lexemes)
    entries = collect_entries(chain.from_iterable(found), "file")
    if not entries:
        raise InvalidLexicon("the lexicon has no <lexeme> with a <grapheme>", "file")
    return entries


def collect_entries(read: Iterable[LexiconEntry], param: str) -> tuple[LexiconEntry, ...]:
    """The entries of a lexicon: the first of each grapheme. An alias that is itself a grapheme is
    read as that one.

    Args:
        param: the field of the request that has them.

    Raises:
        InvalidLexicon: too many, or aliases that lead to each other.
    """
    entries: dict[str, LexiconEntry] = {}
    for entry in read:
        entries.setdefault(entry.grapheme, entry)
        if len(entries) > MAX_ENTRIES:
            raise InvalidLexicon(f"a lexicon has at most {MAX_ENTRIES} entries", param)
    return _follow_aliases(entries, param)


def write_pls(entries: Iterable[LexiconEntry]) -> str:
    lexemes = "".join(
        f"  <lexeme><grapheme>{escape(one.grapheme)}</grapheme>"
        + (
            f"<phoneme>{escape(one.phones)}</phoneme>"
            if one.phones
            else f"<alias>{escape(one.alias)}</alias>"
        )
        + "</lexeme>\n"
        for one in entries
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<lexicon version="1.0" alphabet="ipa" '
        f'xml:lang="en" xmlns="{_NAMESPACE}">\n{lexemes}</lexicon>\n'
    )


def _read_lexeme(lexeme: Element, number: int, alphabet: str) -> Iterator[LexiconEntry]:
    graphemes = [_read_text(one) for one in lexeme if _strip_namespace(one) == "grapheme"]
    said = next((one for one in lexeme if _strip_namespace(one) in ("phoneme", "alias")), None)
    where = f"lexeme {number} ({', '.join(graphemes)[:60]})"
    if said is None or not _read_text(said) or not all(graphemes):
        raise InvalidLexicon(
            f"{where}: needs a <grapheme>, and a <phoneme> or an <alias>, none of them empty",
            "file",
        )
    if max(map(len, (*graphemes, _read_text(said)))) > MAX_CHARACTERS:
        raise InvalidLexicon(f"{where}: has more than {MAX_CHARACTERS} characters", "file")
    if _strip_namespace(said) == "alias":
        yield from (LexiconEntry(one, alias=_read_text(said)) for one in graphemes)
        return
    try:
        phones = to_ipa(_read_text(said), said.get("alphabet", alphabet).lower())
    except ValueError as error:
        raise InvalidLexicon(f"{where}: {error}", "file") from error
    yield from (LexiconEntry(one, phones=phones) for one in graphemes)


def _follow_aliases(entries: Mapping[str, LexiconEntry], param: str) -> tuple[LexiconEntry, ...]:
    """Each entry as its alias says, if that is an entry. Each alias is followed once, however many
    lead to it."""
    read: dict[str, LexiconEntry] = {}
    for first in entries:
        met: dict[str, None] = {}
        name = first
        while name not in read and entries[name].alias in entries:
            if name in met:
                raise InvalidLexicon(f"aliases lead to each other: {' -> '.join(met)[:200]}", param)
            met[name] = None
            name = entries[name].alias
        said = read.setdefault(name, entries[name])
        for one in met:
            read[one] = LexiconEntry(one, said.alias, said.phones)
    return tuple(read[name] for name in entries)


def _strip_namespace(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _read_text(element: Element) -> str:
    return " ".join((element.text or "").split())
