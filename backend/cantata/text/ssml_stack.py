"""How the text inside SSML's elements is spoken: `<prosody>`, `<emphasis>`, `<lang>`, nested."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.languages import get_primary_language
from cantata.contract.data.request import InflectedSpan, Inflection, TextSpan
from cantata.text.ssml import AS_ASKED, LEVEL, Prosody, read_emphasis, read_pitch, read_prosody


@dataclass(frozen=True, slots=True)
class SsmlState:
    """What the elements that are open at a place ask for together."""

    element: str = ""
    """The innermost one's name."""
    prosody: Prosody = AS_ASKED
    inflection: Inflection = LEVEL
    language: str | None = None
    """One of the model's tags. None: the request's."""

    def splits_passage_from(self, other: SsmlState) -> bool:
        """Whether texts of both cannot be one passage."""
        return (self.prosody, self.language) != (other.prosody, other.language)


class SsmlStack:
    """Keeps the open elements of a text while it is read."""

    ELEMENTS = frozenset(("prosody", "emphasis", "lang"))
    """Names of the elements that are read here."""

    def __init__(self, can: Capabilities) -> None:
        self._can = can
        self._open = [SsmlState()]
        """The innermost last."""
        self._since = 0
        """Where the present inflection began."""
        self._inflections: list[InflectedSpan] = []
        self.ignored = set[str]()
        """Names of what has had no effect."""

    @property
    def current(self) -> SsmlState:
        """The state of SSML at this place of the text."""
        return self._open[-1]

    def open(self, found: re.Match[str], attributes: Mapping[str, str]) -> None:
        """An element begins. Raises InvalidRequest: an attribute is not valid; says which, where,
        and what is."""
        name = found["name"].lower()
        outer = replace(self.current, element=name)
        where = (found[0], found.start(), attributes)
        if name == "prosody":
            inner = replace(outer, prosody=read_prosody(*where, outer.prosody))
            inner = replace(inner, inflection=self._read_pitch(*where, outer.inflection))
        elif name == "emphasis":
            inner = replace(outer, inflection=self._read_emphasis(*where, outer.inflection))
        else:
            inner = replace(outer, language=self._read_language(*where, outer.language))
        self._set_inflection(inner.inflection, found.end())
        self._open.append(inner)

    def close(self, name: str, place: int) -> None:
        """An element ends, and those inside it that were not closed."""
        names = [one.element for one in self._open]
        if name not in names:
            return
        begun = len(names) - 1 - names[::-1].index(name)
        self._set_inflection(self._open[begun - 1].inflection, place)
        del self._open[begun:]

    def find_inflections(self, start: int, end: int) -> tuple[InflectedSpan, ...]:
        """What stands out within these places of the text, all of which has been read."""
        found = [one for one in self._inflections if one.span.start < end and one.span.end > start]
        if self.current.inflection != LEVEL and self._since < end:
            found.append(InflectedSpan(TextSpan(self._since, end), self.current.inflection))
        return tuple(found)

    def _set_inflection(self, inflection: Inflection, place: int) -> None:
        before = self.current.inflection
        if inflection == before:
            return
        if before != LEVEL and self._since < place:
            self._inflections.append(InflectedSpan(TextSpan(self._since, place), before))
        self._since = place

    def _read_pitch(
        self, tag: str, place: int, attributes: Mapping[str, str], outer: Inflection
    ) -> Inflection:
        self.ignored.update({"range", "contour"} & attributes.keys())
        pitched = read_pitch(tag, place, attributes, outer)
        if pitched is None or (pitched != outer and not self._can.inflections):
            self.ignored.add("pitch")
            return outer
        return pitched

    def _read_emphasis(
        self, tag: str, place: int, attributes: Mapping[str, str], outer: Inflection
    ) -> Inflection:
        emphasised = read_emphasis(tag, place, attributes, outer)
        if emphasised != outer and not self._can.inflections:
            self.ignored.add("emphasis")
            return outer
        return emphasised

    def _read_language(
        self, tag: str, place: int, attributes: Mapping[str, str], outer: str | None
    ) -> str | None:
        """The model's tag of a language; the language around it if the model does not choose."""
        wanted = attributes.get("xml:lang", attributes.get("lang", "")).strip()
        if not wanted:
            raise InvalidRequest(
                f"{tag!r} at character {place}: the language is missing; write "
                '<lang xml:lang="fr-FR">',
                "input",
            )
        primary = get_primary_language(wanted)
        choices = self._can.spoken_languages
        for tag_of_model in sorted(choices, key=lambda one: one.lower() != wanted.lower()):
            if get_primary_language(tag_of_model) == primary:
                return tag_of_model
        if primary != get_primary_language(outer or self._can.language):
            self.ignored.add("lang")
        return outer
