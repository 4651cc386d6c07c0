"""What SSML asks for: rate, volume, pitch and emphasis by attributes, and elements without text.

`<mark name="..."/>` and `<bookmark mark="..."/>`, as Azure writes it, name places; `<lexicon>`
names lexicons.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, log10

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import Inflection
from cantata.text.patterns import TOKENS

_ATTRIBUTES = {"mark": "name", "bookmark": "mark"}


@dataclass(frozen=True, slots=True)
class TextMark:
    """A place that the client wants the time of."""

    name: str
    place: int
    """In the client's text, by code point."""
    before_pause: bool = False
    """A pause that was asked for lies between it and the next word."""


def find_marks(text: str) -> list[TextMark]:
    marks: list[TextMark] = []
    settled = end = 0
    for found in TOKENS.finditer(text) if "mark" in text else ():
        if any(map(str.isalnum, text[end : found.start()])):
            settled = len(marks)
        end = found.end()
        if found.lastgroup in ("break", "pause"):
            marks[settled:] = [replace(one, before_pause=True) for one in marks[settled:]]
        elif found.lastgroup == "tag":
            attribute = _ATTRIBUTES.get(found["name"].lower(), "")
            name = read_attributes(found["more"]).get(attribute, "")
            if name:
                marks.append(TextMark(name, found.start()))
        elif any(map(str.isalnum, found[0])):
            settled = len(marks)
    return marks


def find_lexicons(text: str) -> list[str]:
    return [
        uri
        for found in TOKENS.finditer(text if "<lexicon" in text.lower() else "")
        if found.lastgroup == "tag" and found["name"].lower() == "lexicon"
        if (uri := read_attributes(found["more"]).get("uri"))
    ]


MIN_RATE, MAX_RATE = 0.25, 4.0
RATES = {"x-slow": 0.5, "slow": 0.8, "medium": 1.0, "default": 1.0, "fast": 1.25, "x-fast": 1.6}
"""Factors for each word for `rate`."""
MIN_VOLUME_DB, MAX_VOLUME_DB = -60.0, 12.0
VOLUMES_DB = {
    "silent": MIN_VOLUME_DB,
    "x-soft": -12.0,
    "soft": -6.0,
    "medium": 0.0,
    "default": 0.0,
    "loud": 3.0,
    "x-loud": 6.0,
}
"""Decibels for each word for `volume`."""
MIN_PITCH, MAX_PITCH = 0.5, 2.0
PITCHES = {"x-low": 0.75, "low": 0.87, "medium": 1.0, "default": 1.0, "high": 1.15, "x-high": 1.35}
"""Factors for each word for `pitch`."""
EMPHASES = {
    "strong": Inflection(1.25, 4.0, 0.75),
    "moderate": Inflection(1.12, 2.0, 0.87),
    "none": Inflection(),
    "reduced": Inflection(0.93, -3.0, 1.15),
}
"""For each `level`: what listeners take for emphasis is higher, louder and longer."""
_ATTRIBUTE = re.compile(
    r"""([\w:.-]+)\s*=\s*(?:\\?"([^"<>]*)"|\\?'([^'<>]*)'|[“”]([^“”<>]*)”|([^\s"'<>=`/]+))"""
)
_PERCENT = re.compile(r"([+-]?)(\d{1,4}(?:\.\d{1,4})?)%")
_FACTOR = re.compile(r"\d{1,3}(?:\.\d{1,4})?")
_SEMITONES = re.compile(r"([+-]?\d{1,2}(?:\.\d{1,4})?)st")
_HERTZ = re.compile(r"[+-]?\d{1,4}(?:\.\d{1,4})?hz")
_DECIBELS = re.compile(r"[+-]?\d{1,3}(?:\.\d{1,4})?(?=db\Z)")


@dataclass(frozen=True, slots=True)
class Prosody:
    """How a passage is spoken, relative to the request."""

    rate: float = 1.0
    """Factor of the speed."""
    volume_db: float = 0.0

    @property
    def gain(self) -> float:
        """Factor of the samples."""
        return 0.0 if self.volume_db <= MIN_VOLUME_DB else 10.0 ** (self.volume_db / 20.0)


AS_ASKED = Prosody()
"""Prosody that changes nothing."""
LEVEL = Inflection()
"""Nothing stands out."""


def read_attributes(written: str) -> Mapping[str, str]:
    """Attributes of a tag by name, in lower case; character references in values are read."""
    found = {}
    for name, *values in _ATTRIBUTE.findall(written):
        # A text that was escaped once too often has a backslash before each quote.
        value = next((one for one in values if one), "")
        found[name.lower()] = html.unescape(value.removesuffix("\\"))
    return found


def read_prosody(tag: str, place: int, attributes: Mapping[str, str], outer: Prosody) -> Prosody:
    """The effect of a `<prosody>` inside of another's. Raises InvalidRequest: `rate` or `volume` is
    no such value; says which, where, and what is valid."""
    rate = _parse_rate(attributes.get("rate", "medium").strip().lower())
    if rate is None:
        raise _build_error(tag, place, "rate", f"{', '.join(RATES)}, 80%, +20% or 1.2; 0.25 to 4")
    volume = _parse_volume_db(attributes.get("volume", "medium").strip().lower())
    if volume is None:
        raise _build_error(
            tag, place, "volume", f"{', '.join(VOLUMES_DB)}, +6dB or 50; up to +12dB"
        )
    within = min(max(outer.rate * rate, MIN_RATE), MAX_RATE)
    louder = min(max(outer.volume_db + volume, MIN_VOLUME_DB), MAX_VOLUME_DB)
    return Prosody(within, louder)


def read_pitch(
    tag: str, place: int, attributes: Mapping[str, str], outer: Inflection
) -> Inflection | None:
    """The effect of a `<prosody>` on the pitch, inside of another's; None: it asks for hertz, which
    no voice here counts in.

    Raises:
        InvalidRequest: `pitch` is no such value; says where, and what is valid.
    """
    written = attributes.get("pitch", "medium").strip().lower()
    if _HERTZ.fullmatch(written):
        return outer if float(written[:-2]) == 0 and written[0] in "+-" else None
    pitch = _parse_pitch(written)
    if pitch is None:
        raise _build_error(
            tag, place, "pitch", f"{', '.join(PITCHES)}, +20%, -2st or 120%; 0.5 to 2"
        )
    return replace(outer, pitch=min(max(outer.pitch * pitch, MIN_PITCH), MAX_PITCH))


def read_emphasis(
    tag: str, place: int, attributes: Mapping[str, str], outer: Inflection
) -> Inflection:
    """The effect of an `<emphasis>` inside of another element. Raises InvalidRequest: `level` is no
    such value; says where, and what is valid."""
    level = EMPHASES.get(attributes.get("level", "moderate").strip().lower())
    if level is None:
        raise _build_error(tag, place, "level", ", ".join(EMPHASES))
    return Inflection(
        min(max(outer.pitch * level.pitch, MIN_PITCH), MAX_PITCH),
        outer.loudness_db + level.loudness_db,
        min(max(outer.rate * level.rate, MIN_RATE), MAX_RATE),
    )


def _parse_pitch(written: str) -> float | None:
    if written in PITCHES:
        return PITCHES[written]
    pitch = _parse_percentage(written)
    if semitones := _SEMITONES.fullmatch(written):
        pitch = 2.0 ** (float(semitones[1]) / 12)
    return pitch if pitch is not None and MIN_PITCH <= pitch <= MAX_PITCH else None


def _parse_percentage(written: str) -> float | None:
    percent = _PERCENT.fullmatch(written)
    if percent is None:
        return None
    sign, number = percent[1], float(percent[2]) / 100
    return 1 + number if sign == "+" else 1 - number if sign == "-" else number


def _parse_rate(written: str) -> float | None:
    if written in RATES:
        return RATES[written]
    rate = float(written) if _FACTOR.fullmatch(written) else _parse_percentage(written)
    return rate if rate is not None and MIN_RATE <= rate <= MAX_RATE else None


def _parse_volume_db(written: str) -> float | None:
    if written in VOLUMES_DB:
        return VOLUMES_DB[written]
    if decibels := _DECIBELS.match(written):
        volume = float(decibels[0])
        return max(volume, MIN_VOLUME_DB) if volume <= MAX_VOLUME_DB else None
    if _FACTOR.fullmatch(written) and float(written) <= 100:
        # SSML 1.0: a share of full scale, which is the voice's own volume.
        share = float(written) / 100
        return max(20 * log10(share) if share else -inf, MIN_VOLUME_DB)
    return None


def _build_error(tag: str, place: int, name: str, valid: str) -> InvalidRequest:
    return InvalidRequest(
        f"{tag!r} at character {place}: {name} is not valid; write {valid}", "input"
    )
