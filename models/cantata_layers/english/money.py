# ruff: noqa: RUF001 (dashes, primes and signs that look alike are what this file is about)
"""Rules for amounts of money."""

from __future__ import annotations

import re

from cantata_layers.english import numbers
from cantata_layers.english.number_rules import DECIMAL_COMMA, NUMBER
from cantata_layers.english.tokens import Accent, Expansion, rule, say, say_in
from cantata_layers.english.units import CURRENCIES, MULTIPLES, Currency

_MULTIPLE = (
    r"(?:\s?(?P<multiple>thousand|million|billion|trillion)|\s?(?P<short>lakh|crore|mn|bn|tn)"
    r"|(?P<letter>\s?[mM](?!\w)|[kKmMbBtT]))"
)

_DESCRIBED = re.compile(
    r"-[a-z]|\s(?:bill|note|coin|deal|fund|loan|budget|package|contract|prize|fine|house|home|gift"
    r"|investment|lawsuit|settlement|grant|donation|discount|coupon|voucher|plan|project|company"
    r"|bonus|fee|deposit|ticket|valuation|market|industry|round|salary|tip|raise|bet|fare|meal"
    r"|minimum|bid|sale|reward|wage|refund|rebate|mortgage|debt|bond|purchase|charge|payment|loss"
    r"|profit|jackpot|advance|shortfall|car|phone|laptop|lunch|dinner)s?\b",
    re.ASCII,
)


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
        words += _read_minor(minor, currency, is_alone=not words)
    return say(match, sign + words)


def _read_minor(minor: str, currency: Currency, *, is_alone: bool) -> list[str]:
    """Reads cents and pence: "and fifty pence", of which the British say the number alone."""
    count, name = numbers.cardinal(int(minor)), currency.minor_many
    if is_alone or minor[0] == "0":
        name = currency.minor_one if minor == "01" else name
        return [*([] if is_alone else ["and"]), *count, name]
    american = Accent.AMERICAN
    return [*say_in(american, "and"), *count, *say_in(american, name)]


def _money_range(match: re.Match[str]) -> Expansion:
    """Reads "$5-10m" as one amount, "five to ten million dollars". Declines amounts with cents."""
    if re.search(r"\.\d\d(?!\d)", match["low"] + " " + match["number"]):
        return None
    currency = CURRENCIES[match["currency"]]
    short = match["short"] or (match["letter"] or "").strip()
    multiple = match["multiple"] or MULTIPLES.get(short)
    words = [*numbers.number(match["low"]), "to", *numbers.number(match["number"])]
    name = currency.one if _before_noun(match) else currency.many
    return say(match, [*words, *([multiple] if multiple else []), *name.split()])


def _pence(match: re.Match[str]) -> Expansion:
    """Reads "50p" and "99c"."""
    one, many = ("penny", "pence") if match["coin"] == "p" else ("cent", "cents")
    name = one if _is_one(match["number"]) else many
    return say(match, [*numbers.number(match["number"]), name])


def _cents(match: re.Match[str]) -> Expansion:
    name = "cent" if _is_one(match["number"]) else "cents"
    return say(match, [*numbers.number(match["number"]), name])


_SYMBOL = r"(?P<currency>US\$|AU\$|CA\$|NZ\$|HK\$|[ACSR]\$|[$€£¥₹₩₽₺₪₫₱₦฿₿₴₵₸])"
_CODE = (
    r"(?P<currency>USD|EUR|GBP|JPY|CHF|AUD|CAD|NZD|HKD|SGD|BRL|CNY|RMB|INR|KRW|MXN|SEK|NOK|DKK|PLN"
    r"|TRY|RUB|ILS|THB|ZAR|BTC|PKR|LKR|NPR|AED|SAR|HUF|CZK|IDR|PHP|VND|TWD|NGN|KES|EGP"
    r"|(?:Rs|Re|kr|S?Fr)(?!\w))\.?"
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
    rule(rf"(?<!\w){_CODE}\s?{_RANGE}(?:{_MULTIPLE})?(?![\w.,]\d|\w|[-–])", _money_range),
    rule(rf"(?<!\w){_SIGN}{_CODE}\s?{_AMOUNT}(?:{_MULTIPLE}(?!\w))?", _money),
    rule(rf"{_SIGN}{_AMOUNT}(?:{_MULTIPLE})?\s?(?P<currency>[$€£₽₺₪₫₴₸])(?![\w$])", _money),
    rule(rf"{_SIGN}{_AMOUNT}(?:{_MULTIPLE})?\s?{_CODE}(?!\w)", _money),
    rule(rf"{_SIGN}{_AMOUNT}(?:{_MULTIPLE})?\s?(?P<currency>zl|kr|Kc)\b", _money),
    rule(rf"{_AMOUNT}\s?¢", _cents),
    rule(r"(?<![\w.,])(?P<number>\d{1,2})(?P<coin>p)(?!\w)", _pence),
    rule(r"(?<![\w.,])(?P<number>[1-9]\d)(?P<coin>c)(?!\w)", _pence),
)
