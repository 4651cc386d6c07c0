# ruff: noqa: RUF001 (dashes, primes and signs that look alike are what this file is about)
"""Rules for numbers with a currency, a percent sign or a unit."""

from __future__ import annotations

import re

from cantata_models.solo.text import numbers
from cantata_models.solo.text.number_rules import DECIMAL_COMMA, NUMBER, SIGN
from cantata_models.solo.text.tokens import Expansion, rule, say, say_span
from cantata_models.solo.text.units import CURRENCIES, MULTIPLES, UNITS

_MULTIPLE = (
    r"(?:\s?(?P<multiple>thousand|million|billion|trillion)|\s?(?P<short>lakh|crore|mn|bn|tn)"
    r"|(?P<letter>\s?[mM](?!\w)|[kKmMbBtT]))"
)

# After a space these letters usually mean something else ("5 V signs", "2 L shapes").
_ATTACHED_ONLY = frozenset({*"VWLl", "cc", "kb"})
_PER = (
    r"(?:/(?P<per>hr|hour|h|dL|dl|sec|second|s|minute|min|day|week|month|mo|year|yr|km|kg|g|L|lb|ml|l|m)"
    r"(?P<per_power>\^?[23](?!\w)|[²³]?))?"
)
# "5m users" means millions.
_COUNTED = re.compile(
    r"\s(?:users|people|views|downloads|copies|subscribers|followers|jobs|records|rows|tokens"
    r"|parameters|years|tons|households|customers|members|barrels)\b",
    re.ASCII,
)
_POWERS = {"": [], "²": ["square"], "2": ["square"], "³": ["cubic"], "3": ["cubic"]}
_OF_TIME = {"": [], "square": ["squared"], "cubic": ["cubed"]}
_PER_WORDS = {"mo": "month", "sec": "second", "wk": "week"}
_UNIT = "|".join(re.escape(name) for name in sorted(UNITS, key=len, reverse=True))


def _is_one(text: str) -> bool:
    return text.lstrip("-−") == "1"


def _before_noun(match: re.Match[str]) -> bool:
    """Whether the amount describes a noun: "a $100 bill", "a $5-a-day plan"."""
    return (
        re.compile(r"-[a-z]|\s(?:bill|note|coin)s?\b").match(match.string, match.end()) is not None
    )


def _money(match: re.Match[str]) -> Expansion:
    currency = CURRENCIES[match["currency"]]
    amount = numbers.canonical(match["number"])
    sign = ["minus"] if match["sign"] else []
    short = match["short"] or (match["letter"] or "").strip()
    multiple = match["multiple"] or MULTIPLES.get(short)
    if multiple:
        return say(match, [*sign, *numbers.number(amount), multiple, *currency.many.split()])
    whole, _, minor = amount.partition(".")
    if len(minor) != 2 or not currency.minor_one:
        name = currency.one if _is_one(amount) or _before_noun(match) else currency.many
        return say(match, [*sign, *numbers.number(amount), *name.split()])
    major = int(whole[:15] or "0")
    words = [] if major == 0 and minor != "00" else numbers.number(whole)
    if words:
        words += (currency.one if major == 1 else currency.many).split()
    if minor != "00":
        name = currency.minor_one if minor == "01" else currency.minor_many
        words += [*(["and"] if words else []), *numbers.cardinal(int(minor)), name]
    return say(match, sign + words)


def _money_range(match: re.Match[str]) -> Expansion:
    """Reads "$5-10m" as one amount, "five to ten million dollars". Declines amounts with cents."""
    if re.search(r"\.\d\d(?!\d)", match["low"] + " " + match["number"]):
        return None
    currency = CURRENCIES[match["currency"]]
    short = match["short"] or (match["letter"] or "").strip()
    multiple = match["multiple"] or MULTIPLES.get(short)
    words = [*numbers.number(match["low"]), "to", *numbers.number(match["number"])]
    return say(match, [*words, *([multiple] if multiple else []), *currency.many.split()])


def _pence(match: re.Match[str]) -> Expansion:
    """Reads "50p" and "99c"."""
    one, many = ("penny", "pence") if match["coin"] == "p" else ("cent", "cents")
    name = one if _is_one(match["number"]) else many
    return say(match, [*numbers.number(match["number"]), name])


def _cents(match: re.Match[str]) -> Expansion:
    name = "cent" if _is_one(match["number"]) else "cents"
    return say(match, [*numbers.number(match["number"]), name])


def _percent(match: re.Match[str]) -> Expansion:
    name = "percent" if match["mark"] == "%" else "per mille"
    return say(match, [*numbers.number(match["number"]), *name.split()])


def _unit(match: re.Match[str]) -> Expansion:
    name = match["unit"]
    if name in _ATTACHED_ONLY and match["gap"] and match["number"].isdigit():
        return None
    if name == "m" and not match["gap"] and _COUNTED.match(match.string, match.end()):
        return None
    one, many = UNITS[name]
    # "a 5-km run": before a noun, a unit stays singular.
    words = one if _is_one(match["number"]) or match["gap"] == "-" else many
    power = ["square"] if match["square"] else _POWERS[match["power"].lstrip("^")]
    thousand = ["thousand"] if match["thousand"] else []
    amount = [*numbers.number(match["number"]), *thousand]
    return say(match, [*amount, *power, *words.split(), *_per(match)])


def _per(match: re.Match[str]) -> list[str]:
    per = match["per"]
    if not per:
        return []
    name = UNITS[per].one if per in UNITS else _PER_WORDS.get(per, per)
    power = _POWERS[(match["per_power"] or "").lstrip("^")]
    if name == "second" and power:
        return ["per", name, *_OF_TIME[power[0]]]
    return ["per", *power, name]


def _feet_and_inches(match: re.Match[str]) -> Expansion:
    words = [*numbers.number(match["feet"]), "foot", *numbers.number(match["inches"])]
    return say(match, words)


def _bare_unit(match: re.Match[str]) -> Expansion:
    one, many = UNITS[match["unit"]]
    # "1/4 tsp" against "2 1/4 tsp": another rule already read the fraction.
    left = match.string[max(0, match.start() - 9) : match.start()]
    below_one = re.search(
        r"(?<!\d )(?<!\d)\d{1,2}/\d{1,2}\s?$|\b(?:half|per|an?|each)\s(?:an?\s)?$", left
    )
    power = _POWERS[match["power"]]
    words = (one if match["per"] or below_one else many).split()
    return say(match, [*power, *words, *_per(match)])


def _per_period(match: re.Match[str]) -> Expansion:
    name = match["per"]
    return say(match, ["per", UNITS[name].one if name in UNITS else _PER_WORDS.get(name, name)])


def _length_mark(match: re.Match[str]) -> Expansion:
    """Reads 12" and 6' as inches and feet, unless the mark closes a quotation."""
    mark = match["mark"]
    left = match.string[max(0, match.start() - 200) : match.start()]
    if left.count('"') % 2 if mark == '"' else re.search(r"(?<!\w)'", left):
        return None
    one, many = ("inch", "inches") if mark == '"' else ("foot", "feet")
    name = one if _is_one(match["number"]) or match["noun"] is not None else many
    return say_span(match.start(), match.end("mark"), [*_amount(match), name])


def _amount(match: re.Match[str]) -> list[str]:
    return numbers.number(match["number"])


def _inches(match: re.Match[str]) -> Expansion:
    name = "inch" if _is_one(match["number"]) else "inches"
    return say(match, [*_amount(match), name])


def _degrees(match: re.Match[str]) -> Expansion:
    return say(match, "celsius" if match[0] == "C" else "fahrenheit")


def _round(match: re.Match[str]) -> Expansion:
    """Reads "100s" and "1000s" as an amount: "hundreds of people"."""
    return say(match, "hundreds" if match[0] == "100s" else "thousands")


def _by(match: re.Match[str]) -> Expansion:
    return say(match, "by")


_SYMBOL = r"(?P<currency>US\$|AU\$|CA\$|NZ\$|HK\$|[ACSR]\$|[$€£¥₹₩₽₺₪₫₱₦฿₿])"
_CODE = (
    r"(?P<currency>USD|EUR|GBP|JPY|CHF|AUD|CAD|NZD|HKD|SGD|BRL|CNY|RMB|INR|KRW|MXN|SEK|NOK|DKK|PLN"
    r"|TRY|RUB|ILS|THB|ZAR|BTC)"
)
_SIGN = r"(?P<sign>(?:(?<![\w)])[-−])?)"
_AMOUNT = rf"(?P<number>{DECIMAL_COMMA}|{NUMBER}|\.\d{{1,2}})"
_RANGE = rf"(?P<low>{NUMBER})(?:[kKmMbB]|mn|bn)?\s?[-–]\s?(?P<number>{NUMBER})"
# "$20 million dollars": the sign was already read as "dollars".
_AGAIN = r"(?:\s(?:US\s)?(?:dollars|euros|pounds|yen|rupees|bucks)\b)?"

RULES = (
    rule(rf"{_SYMBOL}\s?{_RANGE}(?:{_MULTIPLE})?(?![\w.,]\d|\w|[-–])", _money_range),
    rule(rf"{_SIGN}{_SYMBOL}\s?{_AMOUNT}(?:{_MULTIPLE}(?!\w))?{_AGAIN}", _money),
    rule(rf"(?<!\w)(?:(?P<currency>[$€£¥])(?P<sign>[-−])){_AMOUNT}(?:{_MULTIPLE}(?!\w))?", _money),
    rule(rf"(?<!\w){_SIGN}{_CODE}\s?{_AMOUNT}(?:{_MULTIPLE}(?!\w))?", _money),
    rule(rf"{_SIGN}{_AMOUNT}(?:{_MULTIPLE})?\s?(?P<currency>[$€£₽₺₪₫])(?![\w$])", _money),
    rule(rf"{_SIGN}{_AMOUNT}(?:{_MULTIPLE})?\s?{_CODE}(?!\w)", _money),
    rule(rf"{_SIGN}{_AMOUNT}(?:{_MULTIPLE})?\s?(?P<currency>zl|kr)\b", _money),
    rule(rf"{_AMOUNT}\s?¢", _cents),
    rule(r"(?<![\w.,])(?:100|1000|1,000)s(?!\w)", _round),
    rule(r"(?<![\w.,])(?P<number>\d{1,2})(?P<coin>p)(?!\w)", _pence),
    rule(r"(?<![\w.,])(?P<number>[1-9]\d)(?P<coin>c)(?!\w)", _pence),
    rule(rf"(?P<number>{SIGN}(?:{DECIMAL_COMMA}|{NUMBER}|\.\d{{1,9}}))\s?(?P<mark>[%‰])", _percent),
    rule(
        r"(?<![\w.])(?P<feet>\d{1,2})(?:'\s?|\s?ft\.?\s)(?P<inches>\d{1,2})(?:\"|''|\s?in\b)?(?!\w)",
        _feet_and_inches,
    ),
    rule(
        r"(?<![\w.])(?P<number>\d{1,3}(?:\.\d{1,3})?)(?P<mark>[\"'])"
        r"(?:(?=\s?[x×]\s?\d)|(?=\s(?:by|wide|tall|long|high|deep|thick)\b)"
        r"|(?P<noun>(?=\s[a-z]{3})))",
        _length_mark,
    ),
    rule(
        rf"(?<![\w.])(?P<number>{NUMBER})\s?in(?:\.(?=\s[a-z])|(?=\s?[x×]\s?\d"
        rf"|\s(?:by|wide|tall|long|high|deep|thick)\b))",
        _inches,
    ),
    rule(r"(?<![\w.])(?P<number>\d{1,4}(?:\.\d{1,3})?)in(?!\w)", _inches),
    rule(r"(?<=[x×]\s)(?P<number>\d{1,4}(?:\.\d{1,3})?)(?:\sin(?!\w)|\")", _inches),
    rule(
        rf"(?P<number>{SIGN}(?:{DECIMAL_COMMA}|{NUMBER}))"
        rf"(?P<thousand>(?:k(?=\s(?:{_UNIT})\b))?)(?P<gap>[\s-]?)(?P<square>(?:sq\.?\s)?)"
        rf"(?P<unit>{_UNIT})(?P<power>(?:\^?[23]|[²³])?){_PER}(?:\.(?=\s[a-z])|(?![\w/'-]))",
        _unit,
    ),
    rule(
        rf"(?<![\w'])(?P<unit>kg|km|cm|mm|mph|kHz|MHz|GHz|kWh|GB|MB|TB|Mbps|Gbps|tsp|tbsp"
        rf"|oz|lbs)(?P<power>[²³]?){_PER}(?:\.(?=\s[a-z])|(?![\w'-]))",
        _bare_unit,
    ),
    rule(
        r"(?<=\w)/(?P<per>hour|hr|day|night|week|wk|month|mo|year|yr|person|user|second|sec|minute"
        r"|min|kg|km|unit|item|head|h)(?!\w)",
        _per_period,
    ),
    # Before another single letter it is part of a spelled run: "degrees C X X".
    rule(r"(?<=\bdegrees )[CF](?!\w| [A-Z]\b)", _degrees),
    rule(
        r"(?:(?<=[a-z\"'] )|(?<=[a-z]))[x×](?=\s?\d{1,4}(?:\.\d{1,3})?\s?(?:[a-z]{1,2}\b|[\"']))",
        _by,
    ),
)
