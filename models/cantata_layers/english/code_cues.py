"""Tells codes from quantities by the words around: "PIN", "order number", "is your code"."""

from __future__ import annotations

import re

_SECRET = (
    r"(?:code|pin|passcode|password|otp|cvv|cvc|token|key|zip|postcode|passport|routing|sort code"
    r"|tracking|confirmation|verification|booking|reference|serial|imei|iban|ssn|isbn)"
)
_NUMBERED_THING = (
    r"(?:account|acct|order|invoice|ticket|case|claim|member|membership|policy|licen[sc]e|customer"
    r"|reservation|receipt|permit|card|phone|contract|docket|transaction|model|part|item|employee"
    r"|student|patient|sku|id|ref|po|rma)"
)
_LINK = (
    r"(?:\s?(?:number|numbers|no\.?|nr\.?|code|codes|id|is|was|are|and|or|will be|to|[:=#-])){0,4}"
)
_AFTER_SECRET = re.compile(rf"\b{_SECRET}s?{_LINK}\s?[\"'(]?$", re.IGNORECASE | re.ASCII)
_AFTER_NUMBERED = re.compile(
    rf"\b{_NUMBERED_THING}s?\s?(?:number|no\.?|nr\.?|id|:|\#)\s?(?:is|was|:|\#)?\s?$",
    re.IGNORECASE | re.ASCII,
)
_APART_FROM_SECRET = re.compile(
    r"\b(?:code|pin|passcode|password|otp)(?:\s[A-Za-z'-]{1,15}){1,4}\s(?:is|was):?\s$"
    r"|\b(?:cards?|accounts?|acct|numbers?|visa|mastercard|amex)\s(?:number\s|that\s)?"
    r"(?:end|ends|ending)\s(?:in\s|with\s)?$|\blast (?:four|4)(?: digits)?(?: are|:)?\s$"
    r"|\b(?:set|change|reset) (?:the|your|my) (?:code|pin|passcode|password) to\s$"
    r"|\b(?:[Ee]xtension|[Ee]xt\.?)\s$",
    re.ASCII | re.IGNORECASE,
)
"""A code of at least four digits follows."""
_DIALED_BEFORE = re.compile(
    r"\b(?:call|calls|called|calling|dial|dialed|phone|enter|entering|(?:tel|telephone|fax|mobile|cell)[.:]?|text(?:ing)?\s.{1,20}\sto)\s$",
    re.ASCII | re.IGNORECASE,
)
"""A number of at least five digits is dialed or typed."""
_CODE_AFTER = re.compile(
    r"\sis\s(?:your|the)\s(?:[\w-]{1,20}\s){0,3}(?:code|pin|otp|passcode|password)\b",
    re.ASCII | re.IGNORECASE,
)
_PLURAL_AFTER = re.compile(r"\s[a-z]{2,20}s\b", re.ASCII)
# "the code is 5000 lines long", "code 5000 lines"
_COUNTED_AFTER = re.compile(
    r"\s(?:lines?|characters?|chars?|bytes?|words?|digits|units|pieces|people|items|pages|files|rows"
    r"|times|tokens|bits|letters|symbols|users|years|months|days|hours|minutes|seconds|dollars|euros"
    r"|pounds|percent|meters|miles|[kMG]B)\b",
    re.ASCII,
)
_ORDERS_BEFORE = re.compile(
    r"\b(?:to|we|you|I|they|please|can|will|must|should|could|would|and)\sorder\s$",
    re.ASCII | re.IGNORECASE,
)
NAMED_BEFORE = re.compile(rf"\b{_NUMBERED_THING}\s$", re.IGNORECASE | re.ASCII)
_FAULT_BEFORE = re.compile(
    r"\b(?:error|status|exit|http|return|response)\scode:?\s$", re.IGNORECASE | re.ASCII
)
LONG_CODE = 5
WINDOW = 48


def is_code(match: re.Match[str]) -> bool:
    """Whether the words before a number make it a code: "code is", "PIN:", "account number"."""
    before = match.string[max(0, match.start() - WINDOW) : match.start()]
    digits = sum(char.isdigit() for char in match[0])
    if (_FAULT_BEFORE.search(before) and digits <= 4) or _ORDERS_BEFORE.search(before):
        return False
    if _COUNTED_AFTER.match(match.string, match.end()):
        return False
    if digits >= 4 and (
        _APART_FROM_SECRET.search(before) or _CODE_AFTER.match(match.string, match.end())
    ):
        return True
    if digits >= LONG_CODE and _DIALED_BEFORE.search(before):
        return _PLURAL_AFTER.match(match.string, match.end()) is None
    if digits >= 3 and (_AFTER_SECRET.search(before) or _AFTER_NUMBERED.search(before)):
        return True
    return digits >= LONG_CODE and NAMED_BEFORE.search(before) is not None
