# ruff: noqa: RUF001 (dashes, primes and signs that look alike are what this file is about)
"""Units with powers, products and quotients: "kg·m⁻³", "mg/kg/day", "W/(m²·K)".

`EXPRESSION` matches one in folded text; `read` puts it into words.
"""

from __future__ import annotations

import re

from cantata_models.solo.text.units import UNITS, Unit
from cantata_models.solo.text.wordlists import word_set

NAMES = "|".join(re.escape(name) for name in sorted(UNITS, key=len, reverse=True))

_PER_WORDS = {
    "hour": "hour",
    "second": "second",
    "minute": "minute",
    "day": "day",
    "d": "day",
    "week": "week",
    "month": "month",
    "mo": "month",
    "year": "year",
    "acre": "acre",
    "person": "person",
    "dose": "dose",
    "100km": "one hundred kilometers",
    "100 km": "one hundred kilometers",
    "100g": "one hundred grams",
    "100 g": "one hundred grams",
    "100 mL": "one hundred milliliters",
    "100 ml": "one hundred milliliters",
}
_LENGTHS = word_set("m mm cm dm km µm nm mi yd ft in")
_POWER = r"(?:\^?[23](?!\w)|[²³]|(?:\^[-−]|[-−])[¹²³]|\^[-−][123](?!\w))?"
_FACTOR = rf"(?:{NAMES}){_POWER}"
_PER_NAMES = "|".join(sorted(_PER_WORDS, key=len, reverse=True))
_PER = rf"(?:in|{_PER_NAMES}|{NAMES}){_POWER}"
EXPRESSION = (
    rf"{_FACTOR}(?:\s?•\s?{_FACTOR}|\s(?:{NAMES})(?:\^[-−][123](?!\w)|\^?[-−][¹²³])){{0,3}}"
    rf"(?:/{_PER}(?![A-Za-z])|/\({_FACTOR}(?:\s?•\s?{_FACTOR}){{0,2}}\)){{0,3}}"
)
"""A unit, or several that are multiplied or divided. It has no groups."""
_PARTS = re.compile(
    rf"(?P<sign>/\(?|\s?•\s?|\s|^)(?P<name>in(?![A-Za-z])|{_PER_NAMES}|{NAMES})(?P<power>{_POWER})"
    r"(?![A-Za-z])",
    re.ASCII,
)
_SUPERSCRIPTS = str.maketrans("¹²³−", "123-", "^")


def read(expression: str, *, single: bool) -> list[str]:
    """Puts an expression into words; the unit that is counted is in the plural unless `single`."""
    counted: list[list[str]] = []
    divided: list[list[str]] = []
    in_brackets = False
    last: tuple[str, int] = ("", 1)
    for part in _PARTS.finditer(expression):
        name = part["name"]
        power = int(part["power"].translate(_SUPERSCRIPTS) or "1")
        divides = part["sign"].startswith("/") or power < 0
        if divides or in_brackets:
            words = _raised(_name(name).one.split(), name, abs(power))
            divided.append(
                words if in_brackets and not part["sign"].startswith("/") else ["per", *words]
            )
        else:
            counted.append(_raised(_name(name).one.split(), name, power))
            last = (name, power)
        in_brackets = in_brackets or part["sign"] == "/("
    if counted and not single:
        counted[-1] = _raised(_name(last[0]).many.split(), *last)
    return [word for words in counted + divided for word in words]


def _name(name: str) -> Unit:
    if name == "in":
        return Unit("inch", "inches")
    return Unit(_PER_WORDS[name], _PER_WORDS[name]) if name in _PER_WORDS else UNITS[name]


def _raised(words: list[str], name: str, power: int) -> list[str]:
    """Adds a power: "square meters", but "seconds squared"."""
    if power == 1:
        return words
    if name in _LENGTHS:
        return ["square" if power == 2 else "cubic", *words]
    return [*words, "squared" if power == 2 else "cubed"]
