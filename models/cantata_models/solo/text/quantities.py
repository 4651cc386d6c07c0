# ruff: noqa: RUF001 (dashes, primes and signs that look alike are what this file is about)
"""Rules for numbers with a currency, a percent sign or a unit."""

from __future__ import annotations

import re

from cantata_models.solo.text import numbers
from cantata_models.solo.text.number_rules import DECIMAL_COMMA, NUMBER, SIGN
from cantata_models.solo.text.tokens import Expansion, rule, say
from cantata_models.solo.text.units import CURRENCIES, MULTIPLES, UNITS

_MULTIPLE = (
    r"(?:\s?(?P<multiple>thousand|million|billion|trillion)|\s?(?P<short>lakh|crore|mn|bn|tn)"
    r"|(?P<letter>\s?[mM](?!\w)|[kKmMbBtT]))"
)

# After a space these letters usually mean something else ("5 V signs", "2 L shapes").
_ATTACHED_ONLY = frozenset({*"VWLl", "cc", "kb"})
# These letters are units only where the number looks measured: "1.5 A", "273 K", not "seat 23A".
_MEASURED_ONLY = frozenset("KANJT")
_PER = (
    r"(?:/(?P<per>hr|hour|h|dL|dl|sec|second|s|minute|min|day|week|month|mo|year|yr|km|kg|kWh|K|g|L|lb"
    r"|mL|ml|mol|mm|cm|in|ft|GB|MB|TB|l|m|100\s?km)"
    r"(?P<per_power>\^?[23](?!\w)|[²³]?)"
    r"|\s?•?\s?(?P<inverse>s|min|h|m|cm|mm|km|kg|g|mol|L|K|A|V|J|W)[-−](?P<inverse_power>[¹²³]))?"
)
# "5m users" means millions.
_COUNTED = re.compile(
    r"\s(?:users|people|views|downloads|copies|subscribers|followers|jobs|records|rows|tokens"
    r"|parameters|years|tons|households|customers|members|barrels)\b",
    re.ASCII,
)
_DESCRIBED = re.compile(
    r"-[a-z]|\s(?:bill|note|coin|deal|fund|loan|budget|package|contract|prize|fine|house|home|gift"
    r"|investment|lawsuit|settlement|grant|donation|discount|coupon|voucher|plan|project|company"
    r"|bonus|fee|deposit|ticket|valuation|market|industry)s?\b",
    re.ASCII,
)
# "a 65W charger": after an article and before a noun, a unit stays singular.
_ARTICLE_BEFORE = re.compile(r"\b(?:an?|another)\s$", re.IGNORECASE | re.ASCII)
_NOUN_AFTER = re.compile(
    r"[\s-](?!(?:of|and|or|in|on|at|to|for|from|per|a|an|each|is|was|by|with|if|when|than|more|less)\b)"
    r"[A-Za-z]",
    re.ASCII,
)
_POWERS = {"": [], "²": ["square"], "2": ["square"], "³": ["cubic"], "3": ["cubic"]}
_OF_TIME = {"": [], "square": ["squared"], "cubic": ["cubed"]}
_PER_WORDS = {
    "mo": "month",
    "sec": "second",
    "wk": "week",
    "100km": "one hundred kilometers",
    "100 km": "one hundred kilometers",
    "K": "kelvin",
}
_UNIT = "|".join(re.escape(name) for name in sorted(UNITS, key=len, reverse=True))


def _is_one(text: str | None) -> bool:
    return text is not None and text.lstrip("-−") == "1"


def _before_noun(match: re.Match[str]) -> bool:
    """Whether the amount describes a noun: "a $100 bill", "a $5-a-day plan"."""
    return _DESCRIBED.match(match.string, match.end()) is not None


def _money(match: re.Match[str]) -> Expansion:
    currency = CURRENCIES[match["currency"]]
    amount = numbers.canonical(match["number"])
    sign = ["minus"] if match["sign"] else []
    short = match["short"] or (match["letter"] or "").strip()
    multiple = match["multiple"] or MULTIPLES.get(short)
    if multiple:
        name = currency.one if _before_noun(match) else currency.many
        return say(match, [*sign, *numbers.number(amount), multiple, *name.split()])
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
        followed = re.compile(r"\s[A-Z\d]").match(match.string, match.end())
        if name not in "VW" or len(match["number"]) < 2 or followed:
            return None
    if name in _MEASURED_ONLY and not (
        "." in match["number"] or (name == "K" and match["gap"] and len(match["number"]) > 2)
    ):
        return None
    if name == "m" and not match["gap"] and _COUNTED.match(match.string, match.end()):
        return None
    one, many = UNITS[name]
    # "a 5-km run": before a noun, a unit stays singular.
    left = match.string[max(0, match.start() - 10) : match.start()]
    described = _ARTICLE_BEFORE.search(left) and _NOUN_AFTER.match(match.string, match.end())
    words = one if _is_one(match["number"]) or match["gap"] == "-" or described else many
    power = ["square"] if match["square"] else _POWERS[match["power"].lstrip("^")]
    thousand = ["thousand"] if match["thousand"] else []
    amount = [*numbers.number(match["number"]), *thousand]
    return say(match, [*amount, *power, *words.split(), *_per(match)])


def _per(match: re.Match[str]) -> list[str]:
    per = match["per"] or match["inverse"]
    if not per:
        return []
    name = UNITS[per].one if per in UNITS else _PER_WORDS.get(per, per)
    power = _POWERS[(match["per_power"] or match["inverse_power"] or "").strip("^¹")]
    if name == "second" and power:
        return ["per", name, *_OF_TIME[power[0]]]
    return ["per", *power, *name.split()]


def _bare_unit(match: re.Match[str]) -> Expansion:
    one, many = UNITS[match["unit"]]
    # "1/4 tsp" against "2 1/4 tsp": another rule already read the fraction.
    left = match.string[max(0, match.start() - 9) : match.start()]
    below_one = re.search(
        r"(?<!\d)(?<!\d[ -])(?<!\d  )\d{1,2}/\d{1,2}\s?$|\b(?:half|per|an?|each)\s(?:an?\s)?$", left
    )
    power = _POWERS[match["power"]]
    words = (one if match["per"] or below_one else many).split()
    return say(match, [*power, *words, *_per(match)])


def _per_period(match: re.Match[str]) -> Expansion:
    name = match["per"]
    return say(match, ["per", UNITS[name].one if name in UNITS else _PER_WORDS.get(name, name)])


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
    r"|TRY|RUB|ILS|THB|ZAR|BTC|PKR|LKR|NPR|AED|SAR|HUF|CZK|IDR|PHP|VND|TWD|NGN|KES|EGP"
    r"|(?:Rs|Re)(?!\w))\.?"
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
        rf"(?P<number>{SIGN}(?:{DECIMAL_COMMA}|{NUMBER}))"
        rf"(?P<thousand>(?:k(?=\s(?:{_UNIT})\b))?)(?P<gap>[\s-]?)(?P<square>(?:sq\.?\s)?)"
        rf"(?P<unit>{_UNIT})(?P<power>(?:\^?[23]|[²³])?){_PER}(?:\.(?=\s[a-z])|(?![\w'-]|/(?!\d)))",
        _unit,
    ),
    rule(
        rf"(?<![\w'])(?P<unit>kg|km|cm|mm|mph|kHz|MHz|GHz|kWh|GB|MB|TB|Mbps|Gbps|tsp|tbsp"
        rf"|oz|lbs|lb|ml|mL|mcg|mmHg)(?P<power>[²³]?){_PER}(?:\.(?=\s[a-z])|(?![\w'-]))",
        _bare_unit,
    ),
    rule(
        r"(?<=\w)/(?P<per>hour|hr|day|night|week|wk|month|mo|year|yr|person|user|second|sec|minute"
        r"|min|kg|km|unit|item|head|seat|share|ton|barrel|mile|dozen|piece|page|word|call|lb|oz|gal"
        r"|kWh|GB|MB|TB|h)(?!\w)",
        _per_period,
    ),
    # Before another single letter it is part of a spelled run: "degrees C X X".
    rule(r"(?<=\bdegrees )[CF](?!\w| [A-Z]\b)", _degrees),
    rule(
        r"(?:(?<=[a-z\"'] )|(?<=[a-z]))[x×](?=\s?\d{1,4}(?:\.\d{1,3})?\s?(?:[a-z]{1,2}\b|[\"']))",
        _by,
    ),
)
