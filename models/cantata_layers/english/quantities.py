# ruff: noqa: RUF001 (dashes, primes and signs that look alike are what this file is about)
"""Rules for numbers with a percent sign or a unit, for units alone, and for units with powers,
products and quotients: "kg·m⁻³", "mg/kg/day", "W/(m²·K)"."""

from __future__ import annotations

import re

from cantata_layers.english import numbers
from cantata_layers.english.folding import SUPERSCRIPTS
from cantata_layers.english.number_rules import DECIMAL_COMMA, NUMBER, SIGN
from cantata_layers.english.tokens import Expansion, rule, say, word_list, word_set
from cantata_layers.english.units import UNITS, UNITS_ALONE, Unit

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


def read_expression(expression: str, *, single: bool) -> list[str]:
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


# After a space these letters usually mean something else ("5 V signs", "2 L shapes").
_ATTACHED_ONLY = frozenset({*"VWLl", "cc", "kb"})
# These letters are units only where the number looks measured: "1.5 A", "273 K", not "seat 23A".
_MEASURED_ONLY = frozenset("KANJT")
# "a 10 A fuse", "60 W bulbs": what has a current, a voltage, a power or a force.
_APPLIANCE_AFTER = re.compile(
    r"[\s-](?:fuses?|breakers?|circuits?|suppl(?:y|ies)|batter(?:y|ies)|sockets?|outlets?|plugs?"
    r"|chargers?|adapters?|currents?|loads?|motors?|bulbs?|lamps?|lights?|rails?|relays?|switch(?:es)?"
    r"|pumps?|heaters?|panels?|inverters?|transformers?|turns?|angles?|bends?|rotations?)\b",
    re.ASCII,
)
_MEASURED_AFTER = re.compile(
    r"\s(?:[AD]C|of\s(?:force|thrust|current|power|energy|work|heat|tension))\b", re.ASCII
)
_MEASURED_BEFORE = re.compile(
    r"\b(?:force|thrust|tension|current|voltage|fuse|draws?|drawing|drew|pulls|rated|exerts?"
    r"|supplies|delivers|carries)(?:\s(?:of|is|was|at|up\sto|about))?\s$",
    re.ASCII | re.IGNORECASE,
)
_FRACTION = r"(?<![\w/.,])(?:\d{1,3}(?:\s{1,2}|-))?\d{1,2}/\d{1,4}"
# "5m users" means millions.
_COUNTED = re.compile(
    r"\s(?:users|people|views|downloads|copies|subscribers|followers|jobs|records|rows|tokens"
    r"|parameters|years|tons|households|customers|members|barrels)\b",
    re.ASCII,
)
# "a 65W charger": after an article and before a noun, a unit stays singular.
_ARTICLE_BEFORE = re.compile(r"\b(?:an?|another)\s$", re.IGNORECASE | re.ASCII)
_NOUN_AFTER = re.compile(
    r"[\s-](?!(?:of|and|or|in|on|at|to|for|from|per|a|an|each|is|was|by|with|if|when|than|more|less)\b)"
    r"[A-Za-z]",
    re.ASCII,
)
_PER_UNIT_WORDS = {
    "mo": "month",
    "sec": "second",
    "s": "second",
    "wk": "week",
    "sq ft": "square foot",
    "m²": "square meter",
}
_EXPONENT_BEFORE = re.compile(rf"(?:[{SUPERSCRIPTS}]|\d[eE][-+−]?\d{{1,3}})\s$", re.ASCII)


def _percent(match: re.Match[str]) -> Expansion:
    name = "percent" if match["mark"] == "%" else "per mille"
    return say(match, [*numbers.number(match["number"]), *name.split()])


def _unit(match: re.Match[str]) -> Expansion:
    name, number = match["unit"], match["number"]
    if not _is_unit(match):
        return None
    left = match.string[max(0, match.start() - 10) : match.start()]
    # "a 5-km run": before a noun, a unit stays singular.
    described = (
        match["gap"] == "-"
        or re.compile(r"-[a-z]").match(match.string, match.end())
        or (_ARTICLE_BEFORE.search(left) and _NOUN_AFTER.match(match.string, match.end()))
        or _APPLIANCE_AFTER.match(match.string, match.end())
    )
    one = number.lstrip("-−") == "1" or numbers.is_below_one(number)
    thousand = ["thousand"] if match["thousand"] else []
    square = ["square"] if match["square"] else []
    words = read_expression(name, single=bool(one or described))
    return say(match, [*numbers.quantity(number), *thousand, *square, *words])


def _is_unit(match: re.Match[str]) -> bool:
    """Whether letters that may mean something else are a unit after this number."""
    name, number, after = match["unit"], match["number"], match.end()
    if name in _ATTACHED_ONLY | _MEASURED_ONLY and _is_measured(match):
        return True
    if name in _ATTACHED_ONLY and match["gap"] and number.isdigit():
        followed = re.compile(r"\s[A-Z\d]").match(match.string, after)
        return name in "VW" and len(number) > 1 and followed is None
    if name in _MEASURED_ONLY:
        return "." in number or (name == "K" and bool(match["gap"]) and len(number) > 2)
    if name == "pp":
        return "." in number or len(number) < 3
    millions = name == "m" and not match["gap"] and _COUNTED.match(match.string, after)
    return not millions


def _is_measured(match: re.Match[str]) -> bool:
    """Whether the words around a number say that something is measured: "it draws 10 A"."""
    text, after = match.string, match.end()
    left = text[max(0, match.start() - 24) : match.start()]
    is_noun = _APPLIANCE_AFTER.match(text, after) or _MEASURED_AFTER.match(text, after)
    return bool(is_noun or _MEASURED_BEFORE.search(left))


def _after_power(match: re.Match[str]) -> Expansion:
    """Reads the unit after a power, as in "10⁸ m" and "1e-3 m"."""
    if _EXPONENT_BEFORE.search(match.string, max(0, match.start() - 8), match.start()) is None:
        return None
    return say(match, read_expression(match["unit"], single=False))


def _bare_unit(match: re.Match[str]) -> Expansion:
    left = match.string[max(0, match.start() - 9) : match.start()]
    single = re.search(r"\b(?:half|per|an?|each)\s(?:an?\s)?$", left) or "/" in match["unit"]
    return say(match, read_expression(match["unit"], single=bool(single)))


def _per_period(match: re.Match[str]) -> Expansion:
    name = match["per"]
    return say(
        match, ["per", UNITS[name].one if name in UNITS else _PER_UNIT_WORDS.get(name, name)]
    )


def _per_million(match: re.Match[str]) -> Expansion:
    """Reads the slash of "$3/1M tokens"."""
    return say(match, "per")


def _degrees(match: re.Match[str]) -> Expansion:
    return say(match, "celsius" if match[0] == "C" else "fahrenheit")


def _round(match: re.Match[str]) -> Expansion:
    """Reads "100s" and "1000s" as an amount: "hundreds of people"."""
    return say(match, "hundreds" if match[0] == "100s" else "thousands")


def _by(match: re.Match[str]) -> Expansion:
    return say(match, "by")


_PERIODS = word_list(
    "hour hr day night week wk month mo year yr person user second sec minute min kg km unit item "
    "head seat share ton barrel mile dozen piece page word call lb oz gal kWh GB MB TB h gallon "
    "pound token request image license student guest pack bottle bag box can room line m² mi L"
)
_UNIT_ENDS = r"(?:\.(?=\s[a-z])|(?![\w']|\((?!\d)|-[a-z]?(?![\w])|/(?![-−]?\d)))"

RATES = (
    rule(
        r"(?:(?<=[a-z]s)|(?<=req)|(?<=tok))/(?P<per>day|week|wk|month|mo|year|yr|hour|hr|h|minute|min"
        r"|second|sec|s|person|user|night|gallon|mile)(?!\w)",
        _per_period,
    ),
)
"""Slashes after what is counted, "tokens/s"; other words with a slash are alternatives."""

RULES = (
    rule(r"(?<![\w.,])(?:100|1000|1,000)s(?!\w)", _round),
    rule(rf"(?P<number>{SIGN}(?:{DECIMAL_COMMA}|{NUMBER}|\.\d{{1,9}}))\s?(?P<mark>[%‰])", _percent),
    rule(
        rf"(?P<number>{_FRACTION}|{SIGN}(?:{DECIMAL_COMMA}|{NUMBER}))"
        rf"(?P<thousand>(?:k(?=\s(?:{NAMES})\b))?)(?P<gap>[\s-]?)(?P<square>(?:sq\.?\s)?)"
        rf"(?P<unit>{EXPRESSION}){_UNIT_ENDS}",
        _unit,
    ),
    rule(rf"(?:(?<=\d\s)|(?<=[{SUPERSCRIPTS}]\s))(?P<unit>{EXPRESSION}){_UNIT_ENDS}", _after_power),
    rule(
        rf"(?<![\w'])(?=(?:{UNITS_ALONE})(?![A-Za-z]))(?P<unit>{EXPRESSION})(?!-){_UNIT_ENDS}",
        _bare_unit,
    ),
    rule(rf"(?<=\w)/(?P<per>sq ft|{'|'.join(_PERIODS)})(?!\w)", _per_period),
    rule(r"(?<=\d)/(?=1?[kMB]\s(?:tokens|requests|calls|users|words|characters)\b)", _per_million),
    # Before another single letter it is part of a spelled run: "degrees C X X".
    rule(r"(?<=\bdegrees )[CF](?!\w| [A-Z]\b)", _degrees),
    rule(
        r"(?:(?<=[a-z\"'] )|(?<=[a-z])|(?<=\d[\"']))[x×]"
        r"(?=\s?\d{1,4}(?:\.\d{1,3})?\s?(?:[a-z]{1,2}\b|[\"']))",
        _by,
    ),
    rule(r"(?<=\d )x(?= \d)", _by),
)
