# ruff: noqa: RUF001 (dashes, primes and signs that look alike are what this file is about)
"""Rules for numbers with a currency, a percent sign or a unit."""

from __future__ import annotations

import re

from cantata_models.solo.text import numbers
from cantata_models.solo.text.number_rules import NUMBER, SIGN
from cantata_models.solo.text.tokens import Expansion, rule, say
from cantata_models.solo.text.units import CURRENCIES, MULTIPLES, UNITS

_MULTIPLE = r"(?:\s?(?P<multiple>thousand|million|billion|trillion)|(?P<short>[kKmMbBtT]|mn|bn|tn))"

# These letters after a space are more often something else ("5 V signs", "2 L shapes").
_ATTACHED_ONLY = frozenset("VWLl")
_PER = (
    r"(?:/(?P<per>hr|hour|h|sec|second|s|minute|min|day|week|month|mo|year|yr|km|kg|g|L|lb|ml|l|m)"
    r"(?P<per_power>[²³]?))?"
)
_POWERS = {"": [], "²": ["square"], "2": ["square"], "³": ["cubic"], "3": ["cubic"]}
_PER_WORDS = {"mo": "month", "sec": "second"}
_UNIT = "|".join(re.escape(name) for name in sorted(UNITS, key=len, reverse=True))


def _is_one(text: str) -> bool:
    return text.lstrip("-−") == "1"


def _before_noun(match: re.Match[str]) -> bool:
    """Tells whether the amount describes a noun: "a $100 bill", "a $5-a-day plan"."""
    return (
        re.compile(r"-[a-z]|\s(?:bill|note|coin)s?\b").match(match.string, match.end()) is not None
    )


def _money(match: re.Match[str]) -> Expansion:
    currency = CURRENCIES[match["currency"]]
    amount = match["number"]
    sign = ["minus"] if match["sign"] else []
    multiple = match["multiple"] or MULTIPLES.get(match["short"] or "")
    if multiple:
        return say(match, [*sign, *numbers.number(amount), multiple, *currency.many.split()])
    whole, _, minor = amount.partition(".")
    if len(minor) != 2 or not currency.minor_one:
        name = currency.one if _is_one(amount) or _before_noun(match) else currency.many
        return say(match, [*sign, *numbers.number(amount), *name.split()])
    major = int(whole.replace(",", "")[:15])
    words = [] if major == 0 and minor != "00" else numbers.number(whole)
    if words:
        words += (currency.one if major == 1 else currency.many).split()
    if minor != "00":
        name = currency.minor_one if minor == "01" else currency.minor_many
        words += [*(["and"] if words else []), *numbers.cardinal(int(minor)), name]
    return say(match, sign + words)


def _cents(match: re.Match[str]) -> Expansion:
    name = "cent" if _is_one(match["number"]) else "cents"
    return say(match, [*numbers.number(match["number"]), name])


def _percent(match: re.Match[str]) -> Expansion:
    name = "percent" if match["mark"] == "%" else "per mille"
    return say(match, [*numbers.number(match["number"]), *name.split()])


def _unit(match: re.Match[str]) -> Expansion:
    name = match["unit"]
    if name in _ATTACHED_ONLY and match["gap"]:
        return None
    one, many = UNITS[name]
    # "a 5-km run": before a noun, a unit stays singular.
    words = one if _is_one(match["number"]) or match["gap"] == "-" else many
    power = ["square"] if match["square"] else _POWERS[match["power"]]
    return say(match, [*numbers.number(match["number"]), *power, *words.split(), *_per(match)])


def _per(match: re.Match[str]) -> list[str]:
    per = match["per"]
    if not per:
        return []
    name = UNITS[per].one if per in UNITS else _PER_WORDS.get(per, per)
    return ["per", *_POWERS[match["per_power"] or ""], name]


def _feet_and_inches(match: re.Match[str]) -> Expansion:
    words = [*numbers.number(match["feet"]), "foot", *numbers.number(match["inches"])]
    return say(match, words)


def _bare_unit(match: re.Match[str]) -> Expansion:
    one, many = UNITS[match["unit"]]
    # "1/4 tsp" against "2 1/4 tsp": the fraction before was a rule of its own.
    left = match.string[max(0, match.start() - 9) : match.start()]
    below_one = re.search(r"(?<!\d )(?<!\d)\d{1,2}/\d{1,2}\s?$", left)
    return say(match, [*(one if match["per"] or below_one else many).split(), *_per(match)])


def _per_period(match: re.Match[str]) -> Expansion:
    return say(match, "per")


_SYMBOL = r"(?P<currency>US\$|A\$|C\$|[$€£¥₹₩])"
_CODE = r"(?P<currency>USD|EUR|GBP|JPY|CHF)"
_SIGN = r"(?P<sign>(?:(?<![\w)])[-−])?)"
_AMOUNT = rf"(?P<number>{NUMBER})"

RULES = (
    rule(rf"{_SIGN}{_SYMBOL}\s?{_AMOUNT}(?:{_MULTIPLE}(?!\w))?", _money),
    rule(rf"(?<!\w){_SIGN}{_CODE}\s?{_AMOUNT}(?:{_MULTIPLE}(?!\w))?", _money),
    rule(rf"{_SIGN}{_AMOUNT}(?:{_MULTIPLE})?\s?(?P<currency>[$€£])(?![\w\d])", _money),
    rule(rf"{_SIGN}{_AMOUNT}(?:{_MULTIPLE})?\s?{_CODE}(?!\w)", _money),
    rule(rf"{_AMOUNT}\s?¢", _cents),
    rule(rf"(?P<number>{SIGN}{NUMBER})\s?(?P<mark>[%‰])", _percent),
    rule(
        r"(?<![\w.])(?P<feet>\d{1,2})(?:'\s?|\s?ft\.?\s)(?P<inches>\d{1,2})(?:\"|''|\s?in\b)?(?!\w)",
        _feet_and_inches,
    ),
    rule(
        rf"(?P<number>{SIGN}{NUMBER})(?P<gap>[\s-]?)(?P<square>(?:sq\.?\s)?)(?P<unit>{_UNIT})"
        rf"(?P<power>[23²³]?){_PER}(?:\.(?=\s[a-z])|(?![\w/'-]))",
        _unit,
    ),
    rule(
        rf"(?<![\w'])(?P<unit>kg|km|cm|mm|mph|kHz|MHz|GHz|kWh|GB|MB|TB|Mbps|Gbps|tsp|tbsp"
        rf"|oz|lbs){_PER}(?:\.(?=\s[a-z])|(?![\w'-]))",
        _bare_unit,
    ),
    rule(
        r"(?<=\w)/(?=(?:hour|hr|day|night|week|month|year|person|user|second|minute|kg|km)\b)",
        _per_period,
    ),
)
