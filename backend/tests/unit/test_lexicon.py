"""Pronunciation lexicons: PLS files, and texts that are read with them."""

# ruff: noqa: RUF001 (phones that look like letters)

from __future__ import annotations

import time
import tracemalloc

import pytest

from cantata.contract.data.errors import InvalidLexicon
from cantata.contract.data.request import LexiconEntry, TextSpan
from cantata.lexicons.pls import read_pls
from cantata.text import Passage, read_markup
from cantata.text.lexicon import apply_lexicon, select_entries

HEAD = (
    '<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" alphabet="ipa">'
)


def pls(*lexemes: str) -> bytes:
    return (HEAD + "".join(f"<lexeme>{one}</lexeme>" for one in lexemes) + "</lexicon>").encode()


def alias(grapheme: str, said: str) -> str:
    return f"<grapheme>{grapheme}</grapheme><alias>{said}</alias>"


def test_a_file_gives_the_first_pronunciation_of_each_grapheme() -> None:
    read = read_pls(
        pls(
            "<grapheme>Siobhan</grapheme><grapheme>Siobhán</grapheme>"
            "<phoneme>ʃɪˈvɔːn</phoneme><phoneme>x</phoneme>",
            '<grapheme>pecan</grapheme><phoneme alphabet="x-sampa">p@"kA:n</phoneme>',
            alias("SQL", "sequel"),
            alias("SQL", "ess cue ell"),
            alias("MySQL", "SQL"),
        )
    )
    assert read == (
        LexiconEntry("Siobhan", phones="ʃɪˈvɔːn"),
        LexiconEntry("Siobhán", phones="ʃɪˈvɔːn"),
        LexiconEntry("pecan", phones="pəˈkɑːn"),
        LexiconEntry("SQL", alias="sequel"),
        LexiconEntry("MySQL", alias="sequel"),
    )


BOMB = (
    b'<!DOCTYPE lexicon [<!ENTITY a "lol">'
    + b"".join(b'<!ENTITY b%d "%s">' % (n, b"&a;" * 10) for n in range(9))
    + b"]>"
    + pls(alias("x", "&b8;"))
)


@pytest.mark.parametrize(
    ("file", "named"),
    [
        (b"", "not XML"),
        (b"\x00\xff", "not XML"),
        (b"<lexicon>", "not XML"),
        (b"<html></html>", "<html>"),
        (pls(), "no <lexeme>"),
        (pls("<grapheme>a</grapheme>"), "lexeme 1 (a)"),
        (pls(alias("a", "b"), "<grapheme>b</grapheme><phoneme>€</phoneme>"), "lexeme 2 (b): '€'"),
        (pls('<grapheme>b</grapheme><phoneme alphabet="z">a</phoneme>'), "cmu-arpabet"),
        (pls(alias("a", "b"), alias("b", "c"), alias("c", "a")), "a -> b -> c"),
        (pls(alias("a", "a")), "aliases lead to each other"),
        (pls(alias("a" * 201, "b")), "more than 200 characters"),
        (pls(*(alias(f"w{n}", "x") for n in range(10_001))), "at most 10000 entries"),
        (BOMB, "entities"),
        (b'<!DOCTYPE x SYSTEM "file:///etc/passwd">' + pls(alias("a", "b")), "document type"),
    ],
)
def test_a_bad_file_is_refused(file: bytes, named: str) -> None:
    with pytest.raises(InvalidLexicon) as refusal:
        read_pls(file)
    assert named in refusal.value.message
    assert refusal.value.param == "file"


def test_a_chain_of_aliases_is_followed_once() -> None:
    """Ten thousand aliases, each of which led to the next, took a quarter of an hour."""

    def measure(entries: int) -> float:
        file = pls(*(alias(f"w{n}", f"w{n + 1}") for n in range(entries)))
        began_s = time.process_time()
        assert {entry.alias for entry in read_pls(file)} == {f"w{entries}"}
        return time.process_time() - began_s

    few_s = min(measure(250) for _ in range(5))
    # The shortest of them: the collector may come, for all that the tests before this have left.
    assert min(measure(4_000) for _ in range(3)) / few_s < 16 * 16, "as the square at most"


def test_a_million_entries_are_refused_before_they_are_read() -> None:
    file = HEAD.encode() + b"".join(
        b"<lexeme><grapheme>w%d</grapheme><alias>x</alias></lexeme>" % n for n in range(1_000_000)
    )
    tracemalloc.start()
    try:
        with pytest.raises(InvalidLexicon, match="larger than 16 MiB; at most 10000 entries"):
            read_pls(file + b"</lexicon>")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2 * len(file), "no tree was built of it"


def test_a_word_of_an_alias_is_not_looked_up_again() -> None:
    """Two lexicons of a request may name each other's words."""
    (passage,) = read_markup("a b")
    assert isinstance(passage, Passage)
    entries = (LexiconEntry("a", alias="b"), LexiconEntry("b", alias="a"))
    assert apply_lexicon(passage, entries, phones=True).text == "b a"


ENTRIES = (
    LexiconEntry("SQL", alias="sequel"),
    LexiconEntry("SQL Server", alias="sequel server"),
    LexiconEntry("Nguyen", phones="ˈwɪn"),
    LexiconEntry("unused", alias="x"),
)


def test_whole_words_are_replaced_and_keep_their_places() -> None:
    text = "**Nguyen's** SQL Server, mySQL, [[SQL]] and SQL."
    (passage,) = read_markup(text)
    assert isinstance(passage, Passage)
    chosen = select_entries(text, ENTRIES)
    assert chosen == ENTRIES[:3]
    said = apply_lexicon(passage, chosen, phones=True)
    assert said.text == "[[/ˈwɪn/]]'s sequel server, mySQL, [[SQL]] and sequel."
    for word, source in (("sequel server", "SQL Server"), ("[[/ˈwɪn/]]", "Nguyen")):
        at = said.text.index(word)
        span = said.source(TextSpan(at, at + len(word)))
        assert text[span.start : span.end] == source
    assert len(said.text) == len(said.starts) == len(said.ends)


def test_a_model_without_phones_reads_the_word() -> None:
    (passage,) = read_markup("Nguyen")
    assert isinstance(passage, Passage)
    assert apply_lexicon(passage, ENTRIES, phones=False).text == "Nguyen"
