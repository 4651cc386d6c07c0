# ruff: noqa: RUF001 (dashes and quotes that look alike are what this file is about)
"""A sentence in words, for misaki: what is not said as it is written, as it is said.

Words stay as they are written, so misaki says them as it always does. Numbers, signs,
abbreviations, units and addresses become the words that `cantata_layers.english` makes of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from cantata.contract.data.request import TextSpan
from cantata_layers.english.folding import fold
from cantata_layers.english.shortcuts import is_plain
from cantata_layers.english.tokens import Accent, Pause, Spoken, Strength

_ALIKE = {"’": "'", "‐": "-", "‑": "-", "‒": "-", "―": "—"}
_MARKS = frozenset(",.;:!?—–…-")
_AROUND = frozenset('"“”()')
_PAUSES = re.compile(r"[,.;:!?—–…()]|\s-")
_SPELLINGS = {("et", "cetera"): ("etc",), ("missus",): ("Mrs",)}
"""Words that misaki knows only by another spelling."""
_PREFIXED = re.compile(
    r"(kilo|mega|giga|tera|milli|micro|nano|pico|hecto)"
    r"(amp|newton|ohm|becquerel|tesla|pascal|henry|henries|farad|sievert|parsec|gray)(s?)"
)
"""Units of which misaki knows only the parts."""
_METRIC = re.compile(r"(|kilo|hecto|deci|centi|milli|micro|nano)(lit|met)er(s?)")
"""Units of which misaki's British lexicon has only the British spelling."""
_LONG_RUN = re.compile(r"[^\W\d_]{33,}|\d{16,}|\S{81,}")
"""Too long for misaki's lexicon or its letter-to-sound network: read in pieces."""
_READABLE = re.compile(r"[^\W\d_]{1,32}|\d|[^\w\s]|_")
_SMILE = re.compile(r"(?<!\w)[:;=]['o-]?[)(|](?!\w)")
_INITIALS = re.compile(r"\.[A-Z]$")
_DOTTED = re.compile(r"\.[A-Za-z]")


@dataclass(frozen=True, slots=True)
class SaidText:
    """A sentence in words, and where they come from."""

    text: str
    places: tuple[TextSpan, ...]
    """Of each character, its source. Those of words that replace something are all of that."""
    named: tuple[bool, ...]
    """Whether a character is a letter that is read by name, or the s of its plural."""

    def is_replaced(self, place: int) -> bool:
        """Whether a character is of words that replace several characters."""
        return self.places[place].end - self.places[place].start > 1

    def find(self, start: int, end: int) -> TextSpan:
        """The source of characters [start, end)."""
        sources = self.places[start:end]
        if not sources:
            return TextSpan(0, 0)
        return TextSpan(min(one.start for one in sources), max(one.end for one in sources))


@dataclass(frozen=True, slots=True)
class _SaidChunk:
    """Characters of the sentence with something to say."""

    span: TextSpan
    words: tuple[str, ...]
    """Instead of what is written; empty: what is written."""
    pause: Strength | None
    """Before it."""

    @property
    def begins_with_letter(self) -> bool:
        return bool(self.words) and _is_letter(self.words[0])

    @property
    def ends_with_letter(self) -> bool:
        return bool(self.words) and _is_letter(self.words[-1])


def read_written(text: str, accent: Accent = Accent.AMERICAN) -> SaidText:
    """What is said of a sentence."""
    said = _SaidTextWriter(accent)
    if is_plain(text):
        said.copy(text, TextSpan(0, len(text)))
        return said.finish()
    chunks, last_pause = _read_chunks(text, accent)
    before = _SaidChunk(TextSpan(0, 0), (), None)
    for chunk in chunks:
        _add_gap(said, text, before, chunk)
        if chunk.words:
            said.say(text, chunk)
        else:
            said.copy(text, chunk.span)
        before = chunk
    _add_gap(said, text, before, _SaidChunk(TextSpan(len(text), len(text)), (), last_pause))
    return said.finish()


class _SaidTextWriter:
    def __init__(self, accent: Accent) -> None:
        self._accent = accent
        self.text = list[str]()
        self.depth = 0
        """Brackets that are open."""
        self._places = list[TextSpan]()
        self._named = list[bool]()

    def add(self, said: str, span: TextSpan, named: bool = False) -> None:
        """Characters that share a source. A space is left out after another, and before a mark."""
        if said == " " and (not self.text or self.text[-1] == " "):
            return
        if said in _MARKS and said not in "—–-" and self.text and self.text[-1] == " ":
            self._drop_last()
        self.text += said
        self.depth += said.count("(") - said.count(")")
        self._places += [span] * len(said)
        self._named += [named] * len(said)

    def copy(self, text: str, span: TextSpan) -> None:
        """What is written."""
        for place in range(span.start, span.end):
            letter = _ALIKE.get(text[place], text[place])
            if letter.isascii() or unicodedata.category(letter) != "Cf":
                here = TextSpan(place, place + 1)
                self.add(" " if letter.isspace() else letter, here)

    def say(self, text: str, chunk: _SaidChunk) -> None:
        first = text[chunk.span.start]
        words = _SPELLINGS.get(chunk.words, chunk.words)
        for index, word in enumerate(words):
            if index and not (_is_letter(word) and _is_letter(words[index - 1])):
                self.add(" ", chunk.span)
            if _is_letter(word):
                self.add(word.replace("'", ""), chunk.span, named=True)
            elif (parts := _PREFIXED.fullmatch(word)) is not None:
                self.add(f"{parts[1]}-{parts[2]}{parts[3]}", chunk.span)
            elif self._accent is Accent.BRITISH and (unit := _METRIC.fullmatch(word)) is not None:
                self.add(f"{unit[1]}{unit[2]}re{unit[3]}", chunk.span)
            elif index == 0 and first.isupper() and word.startswith(first.lower()):
                self.add(word.capitalize(), chunk.span)
            else:
                self.add(word, chunk.span)

    def finish(self) -> SaidText:
        """The whole, with spaces in runs that are too long."""
        while self.text and self.text[-1] == " ":
            self._drop_last()
        text = "".join(self.text)
        for run in reversed(list(_LONG_RUN.finditer(text))):
            for piece in reversed(list(_READABLE.finditer(text, *run.span()))[1:]):
                self._insert_space(piece.start())
        return SaidText("".join(self.text), tuple(self._places), tuple(self._named))

    def _insert_space(self, place: int) -> None:
        self.text.insert(place, " ")
        self._places.insert(place, self._places[place])
        self._named.insert(place, False)

    def _drop_last(self) -> None:
        for each in (self.text, self._places, self._named):
            each.pop()


def _is_letter(word: str) -> bool:
    """Whether a letter is read by name, perhaps in the plural."""
    return word.removesuffix("'s").isupper()


def _read_chunks(text: str, accent: Accent) -> tuple[list[_SaidChunk], Strength | None]:
    """The chunks of a sentence, and the pause after the last."""
    # Its patterns take a quarter of a second to compile, and plain sentences do not need them.
    from cantata_layers.english.normalize import normalize

    chunks = list[_SaidChunk]()
    pause: Strength | None = None
    group = list[Spoken]()
    for item in chain(normalize(text, accent), [None]):
        if group and (
            not isinstance(item, Spoken) or (item.start, item.end) != (group[0].start, group[0].end)
        ):
            span = TextSpan(group[0].start, group[0].end)
            chunks.append(_SaidChunk(span, tuple(one.word for one in group), pause))
            group, pause = [], None
        if isinstance(item, Spoken):
            group.append(item)
        elif isinstance(item, Pause):
            pause = item.strength if pause is None else max(pause, item.strength)
    return [one for run in _split_runs(chunks) for one in _keep_words(text, run)], pause


def _split_runs(chunks: Sequence[_SaidChunk]) -> Iterator[list[_SaidChunk]]:
    """Chunks with nothing between them."""
    run = list[_SaidChunk]()
    for chunk in chunks:
        if run and (chunk.span.start > run[-1].span.end or chunk.pause is not None):
            yield run
            run = []
        run.append(chunk)
    if run:
        yield run


def _keep_words(text: str, run: Sequence[_SaidChunk]) -> Iterator[_SaidChunk]:
    """A run, with what is said as it is written marked as such."""
    span = TextSpan(run[0].span.start, run[-1].span.end)
    words = tuple(word for chunk in run for word in chunk.words)
    if _spells(text, span, words):
        yield _SaidChunk(span, (), run[0].pause)
        return
    for chunk in run:
        kept = not _is_letter(chunk.words[0]) and _spells(text, chunk.span, chunk.words)
        yield _SaidChunk(chunk.span, () if kept else chunk.words, chunk.pause)


def _spells(text: str, span: TextSpan, words: Sequence[str]) -> bool:
    """Whether misaki says words if it reads what is written."""
    written = fold(text[span.start : span.end]).text.replace("'", "")
    if not written.isalpha() or "".join(words).replace("'", "").lower() != written.lower():
        return False
    if written in ("A", "a"):
        initial = text[max(span.start - 1, 0)] == "." or _DOTTED.match(text, span.end)
        return words[0] == "a" or (initial is not None and bool(initial))
    by_name = all(map(str.isupper, words)) and len(words) > 1
    return not by_name or written.isupper() or written.islower()


def _add_gap(said: _SaidTextWriter, text: str, before: _SaidChunk, after: _SaidChunk) -> None:
    """What is between two chunks: marks and spaces; signs that are not said are spaces."""
    span = TextSpan(before.span.end, after.span.start)
    begin = len(said.text)
    ends = after.pause is Strength.SENTENCE and text[span.start : span.start + 1] not in tuple(
        ".!?…"
    )
    if before.words and ends and text[span.start - 1] == ".":
        said.add(".", TextSpan(span.start - 1, span.start))
    beside_words = bool(before.words or after.words)
    smiles = {
        place for one in _SMILE.finditer(text, span.start, span.end) for place in range(*one.span())
    }
    for place in range(span.start, span.end):
        letter = _ALIKE.get(text[place], text[place])
        if place in smiles or (letter == ")" and said.depth <= 0):
            kept = False
        elif beside_words:
            kept = _is_mark(text, place, after.pause)
        else:
            kept = _is_kept(letter, after.pause)
        mark = "—" if letter == "-" and beside_words else letter
        said.add(mark if kept else " ", TextSpan(place, place + 1))
    if after.pause is not None and not _PAUSES.search("".join(said.text[max(begin - 1, 0) :])):
        if before.span.end:
            said.add(",", TextSpan(span.end, span.end))
        said.add(" ", TextSpan(span.end, span.end))
    elif said.text and said.text[-1].isalnum() and beside_words:
        is_spelled = before.ends_with_letter and after.begins_with_letter
        if span.start < span.end or not is_spelled:
            said.add(" ", span)


def _is_kept(letter: str, pause: Strength | None) -> bool:
    """Whether misaki gets a character that stands between words it reads as they are written."""
    if letter in ":;!?()":  # without a pause they are a smile's, or an address's
        return pause is not None
    foreign = letter.isalpha() and not letter.isascii()
    return letter in _MARKS or letter in _AROUND or letter == "'" or foreign


def _is_mark(text: str, place: int, pause: Strength | None) -> bool:
    """Whether a character beside other words than those written is a mark that it has."""
    letter = _ALIKE.get(text[place], text[place])
    inside = text[place - 1 : place].isalnum() and text[place + 1 : place + 2].isalnum()
    if letter == "'" or (letter == "-" and inside):
        return not inside
    if letter == "." and _INITIALS.search(text, max(place - 3, 0), place):
        return True
    return letter in '"“”' or (pause is not None and letter in _MARKS | _AROUND)
