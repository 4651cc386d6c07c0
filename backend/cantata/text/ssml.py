"""What SSML's attributes ask for: rate, volume, pitch, phones; and where marks stand."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, log10

from cantata.contract.data.errors import InvalidRequest

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
_NEUTRAL_PITCH = frozenset(("medium", "default", "+0%", "0%", "+0st", "+0hz", "100%"))
_ATTRIBUTE = re.compile(
    r"""([\w:.-]+)\s*=\s*(?:\\?"([^"<>]*)"|\\?'([^'<>]*)'|[“”]([^“”<>]*)”|([^\s"'<>=`/]+))"""
)
_PERCENT = re.compile(r"([+-]?)(\d{1,4}(?:\.\d{1,4})?)%")
_FACTOR = re.compile(r"\d{1,3}(?:\.\d{1,4})?")
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


def read_attributes(written: str) -> Mapping[str, str]:
    """Attributes of a tag by name, in lower case; character references in values are read."""
    found = {}
    for name, *values in _ATTRIBUTE.findall(written):
        # A text that was escaped once too often has a backslash before each quote.
        value = next((one for one in values if one), "")
        found[name.lower()] = html.unescape(value.removesuffix("\\"))
    return found


def read_prosody(tag: str, place: int, attributes: Mapping[str, str], outer: Prosody) -> Prosody:
    """The effect of a `<prosody>` inside of another's.

    Raises:
        InvalidRequest: `rate` or `volume` is no such value; says which, where, and what is valid.
    """
    rate = _rate(attributes.get("rate", "medium").strip().lower())
    if rate is None:
        raise _refusal(tag, place, "rate", f"{', '.join(RATES)}, 80%, +20% or 1.2; 0.25 to 4")
    volume = _volume_db(attributes.get("volume", "medium").strip().lower())
    if volume is None:
        raise _refusal(tag, place, "volume", f"{', '.join(VOLUMES_DB)}, +6dB or 50; up to +12dB")
    within = min(max(outer.rate * rate, MIN_RATE), MAX_RATE)
    louder = min(max(outer.volume_db + volume, MIN_VOLUME_DB), MAX_VOLUME_DB)
    return Prosody(within, louder)


def changes_pitch(attributes: Mapping[str, str]) -> bool:
    """Whether the tag asks for another pitch, which no model here has."""
    asked = (attributes.get(name, "medium") for name in ("pitch", "range", "contour"))
    return any(one.strip().lower() not in _NEUTRAL_PITCH for one in asked)


def _rate(written: str) -> float | None:
    if written in RATES:
        return RATES[written]
    if percent := _PERCENT.fullmatch(written):
        sign, number = percent[1], float(percent[2]) / 100
        rate = 1 + number if sign == "+" else 1 - number if sign == "-" else number
    elif _FACTOR.fullmatch(written):
        rate = float(written)
    else:
        return None
    return rate if MIN_RATE <= rate <= MAX_RATE else None


def _volume_db(written: str) -> float | None:
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


def _refusal(tag: str, place: int, name: str, valid: str) -> InvalidRequest:
    return InvalidRequest(
        f"{tag!r} at character {place}: {name} is not valid; write {valid}", "input"
    )
