"""Turns a text into what is spoken: passages without markup, in which each character's position in
the client's text is kept, and the pauses between them."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest
from cantata.text.passages import Passage, TextPause
from cantata.text.patterns import (
    PHONES_TARGET,
    POWER,
    TAG_IN_CODE,
    TOKENS,
    TOKENS_INSIDE,
    is_tag,
    replacement,
)
from cantata.text.pauses import break_s, pause_s
from cantata.text.phone_alphabets import ALPHABETS, to_ipa
from cantata.text.say_as import say_as
from cantata.text.ssml import read_attributes
from cantata.text.ssml_stack import SsmlStack, SsmlState

_MAX_MARK = 3
_CALCULATES = re.compile(r"[\\^_=+{}]")
_WITHOUT_EFFECT = frozenset(("audio", "voice"))
"""Elements of SSML whose text is read as if they were not there."""
_LINE_LEAD = 12
"""Spaces before the first cell of a table's row."""


ANY_MODEL = Capabilities()
"""What every model can do."""


def read_markup(
    text: str, can: Capabilities = ANY_MODEL, *, language: str = "", line_start: bool = True
) -> list[Passage | TextPause]:
    """Read a complete text; passages of nothing but spaces are left out.

    Args:
        can: what the model can do: whether it reads phones in `[[...]]`, so that
            `[word](/phones/)` and `<phoneme>` become that; what `<emphasis>`, `<lang>` and
            `<prosody>` can change.
        language: BCP 47, of the words that `<say-as>` becomes, outside of `<lang>`. Empty: the
            model's.
        line_start: it begins a line, which may be a quotation, a heading, a fence.

    Raises:
        InvalidRequest: a pause that is not written as one, or is too long, phones that are none, or
            another value of SSML; says which and where.
    """
    reader = MarkupReader(can, language=language)
    reader.read(text, 0, len(text), line_start=line_start)
    return reader.parts


def find_ignored(text: str, can: Capabilities = ANY_MODEL, *, language: str = "") -> list[str]:
    """The SSML in a text that has no effect, as `ssml:emphasis`; arguments and errors as of
    `read_markup`."""
    if "<" not in text:
        return []
    reader = MarkupReader(can, language=language)
    reader.read(text, 0, len(text))
    return [f"ssml:{name}" for name in sorted(reader.ignored)]


def strip_markup(text: str) -> str:
    """The text without its markup, with a space for each pause, even a wrong one."""
    reader = MarkupReader(pauses=False)
    reader.read(text, 0, len(text))
    return reader.text


class MarkupReader:
    """Collects the spoken part of a text.

    Args:
        can, language: as `read_markup`.
        pauses: cut the text at its pauses; else each is a space, whatever is in it, and no element
            changes how the text is spoken.
    """

    def __init__(
        self, can: Capabilities = ANY_MODEL, *, language: str = "", pauses: bool = True
    ) -> None:
        self._pauses, self._phones, self._language = pauses, can.phones, language or can.language
        self._ssml = SsmlStack(can)
        self.ignored = self._ssml.ignored
        """Names of the SSML that has had no effect."""
        self._parts: list[Passage | TextPause] = []
        self._text: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []

    @property
    def text(self) -> str:
        """The text read since the last pause."""
        return "".join(self._text)

    @property
    def parts(self) -> list[Passage | TextPause]:
        """Everything read so far, without passages of nothing but spaces."""
        self._close()
        return self._parts

    def read(self, text: str, start: int, end: int, *, line_start: bool = True) -> int:
        """Read the characters [start, end); those around them are context.

        Returns:
            Where reading continues: `end`, or after the mark there.

        Raises:
            InvalidRequest: as `read_markup`.
        """
        tokens = TOKENS if line_start else TOKENS_INSIDE
        found = tokens.search(text, start)
        while found is not None and found.start() < end:
            self._copy(text, start, found.start())
            start = self._read_token(found)
            found = tokens.search(text, start)
        self._copy(text, start, end)
        return max(start, end)

    def _read_token(self, found: re.Match[str]) -> int:
        """Read one mark; returns where reading continues. Unnamed kinds have no words."""
        text = found.string
        match found.lastgroup:
            case "pause":
                self._pause(found, pause_s)
            case "break":
                self._pause(found, break_s)
            case "tag":
                return self._read_tag(found)
            case "declaration" if self._pauses:
                raise InvalidRequest(
                    f"{found[0]!r} at character {found.start()}: declarations of entities and the "
                    "like are not read; write what they stand for",
                    "input",
                )
            case "declaration":
                self._copy(text, *found.span())
            case "element":
                self._read_element(found)
            case "placeholder":
                return self._read_placeholder(found)
            case "link" if self._phones and (phones := PHONES_TARGET.search(found[0])):
                self._put(f"[[{phones['phones']}]]", *found.span("label"))
            case "link":
                self.read(text, *found.span("label"), line_start=False)
            case "code":
                self._read_code(text, *found.span("words"))
            case "autolink":
                self._copy(text, *found.span("address"))
            case "literal":
                self._copy(text, *found.span("data"))
            case "substitute":
                self._put(found["alias"], *found.span("replaced" if found["replaced"] else 0))
            case "formula":
                return self._read_formula(found)
            case "entity":
                self._put(_find_shown(found, html.unescape(found[0])), *found.span())
            case "escaped":
                self._put(_find_shown(found, found["character"]), *found.span())
            case "mark" if _stands_alone(found):
                self._copy(text, *found.span())
            case "cell":
                self._put(_read_cell(found), *found.span())
            case "kept":
                self._copy(text, *found.span())
        return found.end()

    def _pause(
        self, found: re.Match[str], measure_seconds: Callable[[re.Match[str]], float]
    ) -> None:
        if not self._pauses:
            self._put(" ", *found.span())
            return
        duration_s = measure_seconds(found)
        if duration_s:
            self._close()
            self._parts.append(TextPause(duration_s))
        else:
            self._put(" ", *found.span())

    def _read_tag(self, found: re.Match[str]) -> int:
        name, closes, empty = found["name"], bool(found["slash"]), bool(found["empty"])
        if not is_tag(name, found["more"], closes=closes, empty=empty):
            return self._read_placeholder(found)
        self._put(replacement(name), *found.span())
        if name.lower() in self._ssml.ELEMENTS:
            if self._pauses and not empty:
                self._change_style(found, closes=closes)
        elif name.lower() in _WITHOUT_EFFECT:
            self.ignored.add(name.lower())
        return found.end()

    def _change_style(self, found: re.Match[str], *, closes: bool) -> None:
        """Begin or end an element that changes how its text is spoken, and perhaps a passage."""
        before = self._ssml.current
        if closes:
            self._ssml.close(found["name"].lower(), found.start())
        else:
            self._ssml.open(found, read_attributes(found["more"]))
        if self._ssml.current.splits_passage_from(before):
            self._close(before)

    def _read_element(self, found: re.Match[str]) -> None:
        """Read the text of `<phoneme>` and `<say-as>` as they say; without effect, as it is."""
        attributes = read_attributes(found["given"])
        content = found["content"] or ""
        place = found.span("content" if content else 0)
        said: str | None = None
        if found["kind"].lower() == "say-as":
            kind, form = attributes.get("interpret-as", ""), attributes.get("format", "")
            language = self._ssml.current.language or self._language
            said = say_as(html.unescape(content), kind, form, language)
        elif self._pauses:
            phones = _read_phones(found, attributes)
            said = f"[[/{phones}/]]" if self._phones else None
        if said is None:
            self.ignored.add(found["kind"].lower())
            if content:
                self.read(found.string, *place, line_start=False)
        else:
            self._put(said, *place)

    def _read_placeholder(self, found: re.Match[str]) -> int:
        """Read the words of `<your name>`, `List<String>`; `a<b and c>d` is no such thing."""
        start, end = found.span()
        before, after = _find_neighbours(found)
        inner = found[0][1:-1]
        if inner.startswith("/") or (before.isalnum() and " " in inner and "," not in inner):
            self._copy(found.string, start, start + 1)
            return start + 1
        self._put(" " if before.isalnum() else "", start, start + 1)
        self._copy(found.string, start + 1, end - 1)
        self._put(" " if after.isalnum() else "", end - 1, end)
        return end

    def _read_code(self, text: str, start: int, end: int) -> None:
        """Read code within a line as it is; for a tag in it, read the tag's words."""
        for tag in TAG_IN_CODE.finditer(text, start, end):
            self._copy(text, start, tag.start())
            self._put(" ", tag.start(), tag.start("inner"))
            self._copy(text, *tag.span("inner"))
            self._put(" ", tag.end("inner"), tag.end())
            start = tag.end()
        self._copy(text, start, end)

    def _read_formula(self, found: re.Match[str]) -> int:
        """Read what is between the dollar signs, unless they are money."""
        math = found["math"]
        if math[0].isdigit() and not _CALCULATES.search(math):
            self._copy(found.string, found.start(), found.start() + 1)
            return found.start() + 1
        self._copy(found.string, *found.span("math"))
        return found.end()

    def _copy(self, text: str, start: int, end: int) -> None:
        if start < end:
            self._text.append(text[start:end])
            self._starts.extend(range(start, end))
            self._ends.extend(range(start + 1, end + 1))

    def _put(self, text: str, start: int, end: int) -> None:
        """Add text that stands for characters [start, end) of the client's text."""
        self._text.append(text)
        self._starts.extend([start] * len(text))
        self._ends.extend([end] * len(text))

    def _close(self, state: SsmlState | None = None) -> None:
        """End a passage, which has this state instead of the present one."""
        text = self.text
        if text.strip():
            how = state or self._ssml.current
            inflections = self._ssml.find_inflections(self._starts[0], self._ends[-1])
            places = tuple(self._starts), tuple(self._ends)
            self._parts.append(Passage(text, *places, how.prosody, inflections, how.language))
        self._text, self._starts, self._ends = [], [], []


def _read_phones(found: re.Match[str], attributes: Mapping[str, str]) -> str:
    """The IPA of a `<phoneme>`. Raises InvalidRequest: its alphabet or its phones are not valid."""
    alphabet = attributes.get("alphabet", "ipa").lower()
    try:
        return to_ipa(attributes.get("ph", ""), alphabet)
    except ValueError as error:
        raise InvalidRequest(
            f"{found[0]!r} at character {found.start()}: {error}; write "
            f'<phoneme alphabet="ipa" ph="...">; alphabets are {", ".join(ALPHABETS)}',
            "input",
        ) from None


def _find_neighbours(found: re.Match[str]) -> tuple[str, str]:
    """The characters before and after a mark; empty at the ends of the text."""
    start, end = found.span()
    return found.string[max(0, start - 1) : start], found.string[end : end + 1]


def _stands_alone(found: re.Match[str]) -> bool:
    """Whether a run of `*`, `_` and the like is text and not markup, as in `2*3`, `5 * 3`,
    `snake_case`, `10**-3`, `(a+b)**2`."""
    before, after = _find_neighbours(found)
    inside = all(side.isascii() and side.isalnum() for side in (before, after))
    if found[0] == "**" and POWER.match(found.string, max(0, found.start() - 1)):
        return True
    return inside or not (before.strip() or after.strip()) or len(found[0]) > _MAX_MARK


def _read_cell(found: re.Match[str]) -> str:
    """A table's cells are read like a list; the bars around a row are not read."""
    before, after = _find_neighbours(found)
    if len(found[0]) > 1 or before.strip() or after.strip():
        lead = found.string[max(0, found.start() - _LINE_LEAD) : found.start()].rstrip(" \t")
        outer = len(found[0]) == 1 and (lead[-1:] in ("", "\n") or after in ("", "\n"))
        return "" if outer else found[0]
    return "," if before and after not in ("", "\n") and before != "\n" else ""


def _find_shown(found: re.Match[str], character: str) -> str:
    """The text that an entity or an escape stands for. A bracket must not form a tag for the
    model's own normalizer, and control characters have no sound."""
    before, after = _find_neighbours(found)
    if character == "<" and not before.isalnum() and (after.isalpha() or after == "/"):
        return ""
    if character.isspace():
        return " "
    return "".join(filter(str.isprintable, character))
