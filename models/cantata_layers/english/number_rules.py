# ruff: noqa: RUF001 (dashes, primes and signs that look alike are what this file is about)
"""Rules for numbers: plain, ordinal, fractions, powers, versions and codes."""

from __future__ import annotations

import re

from cantata_layers.english import numbers
from cantata_layers.english.folding import SUPERSCRIPTS
from cantata_layers.english.tokens import Expansion, Item, Pause, Strength, rule, say, say_span

NUMBER = (
    r"(?:\d{1,3}(?:\.\d{3}){1,5},\d{1,2}(?!\d)|\d{1,3}(?:\.\d{3}){2,5}(?![.,]?\d)"
    r"|(?:\d{1,3}(?:,\d{2,3}){0,9},\d{3}(?!\d)|\d{1,40})(?:\.\d{1,40})?)"
)
"""An unsigned number; read as European only if it cannot be American ("1.234,5", "1.234.567").

Repetitions are bounded so that hostile text takes linear time.
"""

DECIMAL_COMMA = r"(?:(?<![\d,.])\d{1,9},\d{1,2}(?!\d|,\d))"
"""A European decimal as in "3,5 km"; certain only before a unit or a currency."""

SIGN = r"(?:(?<![\w)%°])(?<!\d[\"'])[-−](?=[\d.]))?"

_LARGE = {
    "M": "million",
    "m": "million",
    "mn": "million",
    "bn": "billion",
    "tn": "trillion",
    "B": "billion",
}
_COMMON_PAIRS = {
    "24/7": "twenty four seven",
    "9/11": "nine eleven",
    "20/20": "twenty twenty",
}
_COMMON_SPLITS = {
    "1-2": "one two",
    "50-50": "fifty fifty",
    "24-7": "twenty four seven",
    "20-20": "twenty twenty",
}

# A count before a plural is a quantity, not a year: "1234 people", "1500 apples".
_PLURAL_FOLLOWS = re.compile(
    r"\s(?:people|men|women|children|more|feet|(?!(?:was|is|has|as|its|his|this|does|us|versus|thus"
    r"|always|across|perhaps|sales|marks|means|brings|sees|remains)\b)[a-z]{2,20}s)\b",
    re.ASCII,
)

_CALLED = re.compile(r"\b(?:call|called|calling|dial|dialed)\s$", re.ASCII | re.IGNORECASE)
_STAGES = {"alpha": ["alpha"], "beta": ["beta"], "rc": ["R", "C"], "dev": ["dev"]}
_STAGE = r"(?:-?(?P<stage>alpha|beta|rc|dev)[.-]?(?P<build>\d{0,4}))?"
_EMERGENCY = frozenset({"911", "112", "999", "311", "411"})
_SOFTWARE = re.compile(
    r"\b(?:python|node|version|release|php|ruby|java|go|rust|ubuntu|debian|fedora|django|rails|ios"
    r"|android|macos|kernel|linux|cuda|pytorch|numpy|vllm|unicode)\s?(?:[<>=]=?\s?)?$",
    re.ASCII | re.IGNORECASE,
)
_STATE = re.compile(r"\b[A-Z]\.?[A-Z]\.?\s$", re.ASCII)
_NUMBERED_PLACE = re.compile(
    r"\b(?:boeing|airbus|xbox|fahrenheit|room|flight(?:\s[A-Z]{2})?|highway|route|suite|apartment|bus|interstate|error|status|extension"
    r"|http|(?:error|status|exit|http|return|response)\scode"
    r"|ext\.?)\s$|\b(?:US|SR|CA|NY|FM)-$",
    re.ASCII | re.IGNORECASE,
)
_SERIES_BEFORE = re.compile(r"\b(?:Windows|iOS|Android|macOS|Grades?|Class|Years?)\s$", re.ASCII)
_NUMBERED_AFTER = re.compile(r"\s(?:errors?|status\scode)\b", re.ASCII)
_RATIO_BEFORE = re.compile(
    r"\b(?:ratios?|odds|scale|aspect|dilut(?:ed?|ion)|mix(?:ed)?)(?:\s(?:of|is|was|at|to|in|are))?:?\s$",
    re.ASCII | re.IGNORECASE,
)
_RATIO_AFTER = re.compile(
    r"\s(?:ratio|scale|dilution|odds|mix|aspect|model|split|reduction|gear|screen|monitor|display"
    r"|video|maps?|drawing|favorite)s?\b",
    re.ASCII,
)
_BY_BEFORE = re.compile(r"(?<![\d.,])\d{3,5}\s?[x×]\s?$", re.ASCII)
_YEAR_BEFORE = re.compile(
    r"\b(?:in|since|until|till|before|after|by|circa|year|AD)\s$", re.ASCII | re.IGNORECASE
)
_COUNTED_BEFORE = re.compile(
    r"\($|(?<!\w)(?!(?:and|or|the|of|for|with|let|where|when|if|is|by|to|in|on)\s)[A-Za-z]{3,15}\s$",
    re.ASCII | re.IGNORECASE,
)


def _plain(match: re.Match[str]) -> Expansion:
    text = match[0]
    before = match.string[max(0, match.start() - 20) : match.start()]
    if (text in _EMERGENCY and _CALLED.search(before)) or (
        len(text) == 5 and _STATE.search(before)
    ):
        return say(match, numbers.digits(text))
    numbered = _NUMBERED_PLACE.search(before) or _NUMBERED_AFTER.match(match.string, match.end())
    if re.fullmatch(r"\d{3}", text) and numbered:
        return say(match, numbers.grouped(text))
    if re.fullmatch(r"\d{3,5}", text) and _BY_BEFORE.search(before):
        return say(match, numbers.grouped(text))
    if re.fullmatch(r"\d{1,3}\.\d\d", text) and _SOFTWARE.search(before):
        whole, minor = text.split(".")
        return say(match, [*numbers.number(whole), "point", *_minor_version(minor)])
    if re.fullmatch(r"\d{4}", text) and not _PLURAL_FOLLOWS.match(match.string, match.end()):
        if re.fullmatch(r"10[1-9]\d", text) and _YEAR_BEFORE.search(before):
            return say(match, numbers.grouped(text))
        return say(match, numbers.year(int(text)) if text[0] != "0" else numbers.digits(text))
    return say(match, numbers.number(text))


def _minor_version(text: str) -> list[str]:
    return ["oh", *numbers.digits(text[1])] if text[0] == "0" else numbers.number(text)


def _spaced(match: re.Match[str]) -> Expansion:
    return say(match, numbers.number(match[0]))


def _possessive(match: re.Match[str]) -> Expansion:
    *head, last = numbers.number(match["number"])
    return say(match, [*head, f"{last}'s"])


def _named_plan(match: re.Match[str]) -> Expansion:
    """Reads "401(k)" and "501(c)(3)" as taxpayers do."""
    letter, digit = match["letter"].upper(), match["digit"]
    return say(match, [*numbers.grouped(match["number"]), letter, *numbers.digits(digit or "")])


def _season(match: re.Match[str]) -> Expansion:
    following = int(match["next"])
    words = numbers.year(following) if following > 99 else numbers.number(match["next"])
    return say(match, [*numbers.year(int(match["year"])), *words])


def _large(match: re.Match[str]) -> Expansion:
    return say(match, [*numbers.number(match["number"]), _LARGE[match["short"]]])


def _ordinal(match: re.Match[str]) -> Expansion:
    return say(match, numbers.ordinal(int(match["number"].replace(",", ""))))


def _fraction(match: re.Match[str]) -> Expansion:
    pair = _COMMON_PAIRS.get(match[0])
    if pair is not None:
        return say(match, pair)
    left = match.string[max(0, match.start() - 12) : match.start()]
    if int(match["bottom"]) == int(match["top"]) + 1 and _SERIES_BEFORE.search(left):
        return say(match, [*numbers.number(match["top"]), *numbers.number(match["bottom"])])
    if match["top"] == match["bottom"] and not match["ordinal"]:
        count = numbers.cardinal(int(match["top"]))
        return say(match, [*count, "out", "of", *count])
    if match["bottom"] == "1":
        return say(match, [*numbers.number(match["top"]), "to", "one"])
    if match["whole"] is not None:
        proper = int(match["top"]) < int(match["bottom"])
        mixed = f"{match['whole']} {match['top']}/{match['bottom']}"
        return say(match, numbers.quantity(mixed)) if proper else None
    words = numbers.fraction(int(match["top"]), int(match["bottom"]))
    left = match.string[max(0, match.start() - 4) : match.start()]
    # "a half mile", not "a one half mile".
    article = words[0] == "one" and re.search(r"\b[Aa]\s{1,2}$", left)
    return say(match, words[1:] if article else words)


def _split(match: re.Match[str]) -> Expansion:
    return say(match, _COMMON_SPLITS[match[0].replace("–", "-")])


def _scientific(match: re.Match[str]) -> Expansion:
    power = numbers.cardinal(int(match["exponent"].replace("−", "-")))
    return say(match, [*numbers.number(match["number"]), "times", "ten", "to", "the", *power])


def _negative_power(match: re.Match[str]) -> Expansion:
    value = int("".join(str(SUPERSCRIPTS.index(char)) for char in match["power"]))
    return say(match, ["to", "the", "minus", *numbers.cardinal(value)])


def _power(match: re.Match[str]) -> Expansion:
    value = int("".join(str(SUPERSCRIPTS.index(char)) for char in match[0]))
    if value in (2, 3):
        return say(match, "squared" if value == 2 else "cubed")
    return say(match, ["to", "the", *numbers.ordinal(value)])


def _version(match: re.Match[str]) -> Expansion:
    if re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,5}", match[0]):
        # A European "1.234.567".
        return None
    prefix = ["version"] if match["v"] else []
    words = numbers.number(match["first"])
    for part in match["rest"].split(".")[1:]:
        words += ["point", *numbers.number(part)]
    if match["stage"]:
        words += _STAGES[match["stage"]] + (
            numbers.number(match["build"]) if match["build"] else []
        )
    return say(match, prefix + words)


def _code(match: re.Match[str]) -> Expansion:
    """Reads "4-4-2" and "10-20-30" as numbers, and groups of more digits digit by digit."""
    items: list[Item] = []
    parts = list(re.finditer(r"\d+", match[0]))
    small = all(len(part[0]) <= 2 and part[0][0] != "0" for part in parts)
    for part in parts:
        start = match.start() + part.start()
        words = numbers.number(part[0]) if small else numbers.digits(part[0])
        items += say_span(start, start + len(part[0]), words)
        items.append(Pause(Strength.CLAUSE))
    return items[:-1]


def _by(match: re.Match[str]) -> Expansion:
    """Reads the first number and the sign of "1920x1080" or "3 x 4"."""
    return say(match, [*(numbers.grouped(match["side"])), "by"])


def _ratio(match: re.Match[str]) -> Expansion:
    """Reads "1:10,000" and "a 1:50 scale" as ratios; without such signs "1:50" is a time."""
    left = match.string[max(0, match.start() - 24) : match.start()]
    if not ("," in match["b"] or _RATIO_BEFORE.search(left)) and (
        _RATIO_AFTER.match(match.string, match.end()) is None
    ):
        return None
    return say(match, [*numbers.number(match["a"]), "to", *numbers.number(match["b"])])


RATIOS = (
    rule(
        r"(?<![\w:.,])(?P<a>\d{1,3}):(?P<b>\d{1,3}(?:,\d{3}){1,2}|\d{1,5})(?![\w:]|[.,]\d)", _ratio
    ),
)
"""Numbers with a colon that would else be times."""


def _multiplied(match: re.Match[str]) -> Expansion:
    """Reads "3x faster"."""
    return say(match, [*numbers.number(match["number"]), "times"])


def _times(match: re.Match[str]) -> Expansion:
    """Reads the sign of "eggs x2" and "(x3)"; "x2" alone is a variable."""
    left = match.string[max(0, match.start() - 20) : match.start()]
    return say(match, "times") if _COUNTED_BEFORE.search(left) else None


RULES = (
    rule(rf"(?P<number>{NUMBER})[eE](?P<exponent>[-+−]?\d{{1,3}})(?!\w)", _scientific),
    rule(
        r"(?<![\w.])(?P<v>[vV]?)(?P<first>\d{1,6})(?P<rest>(?:\.\d{1,6}){2,5})"
        rf"{_STAGE}(?![\w.]\d)",
        _version,
    ),
    rule(
        r"(?<![\w.])(?P<v>[vV])(?P<first>\d{1,6})(?P<rest>(?:\.\d{1,6})?)"
        rf"{_STAGE}(?!\w)",
        _version,
    ),
    rule(r"(?<![\w-])\d{1,9}(?:-\d{1,9}){2,9}(?![\w-])", _code),
    rule(r"(?<![\w-])(?:50[-–]50|24-7|20-20|1-2(?=\spunch))(?![\w-])", _split),
    rule(rf"(?<!\w)(?P<number>{NUMBER})'s(?!\w)", _possessive),
    rule(r"(?<!\w)(?P<number>[45]\d\d)\((?P<letter>[a-k])\)(?:\((?P<digit>\d)\))?", _named_plan),
    rule(r"(?<![\w/])(?P<year>(?:19|20)\d\d)/(?P<next>(?:19|20)?\d\d)(?![\w/])", _season),
    rule(r"(?<![\w.,])[1-9]\d?(?:\s\d{3}){2,4}(?![\w-]|[.,]\d)", _spaced),
    rule(rf"(?<!\w)(?P<number>{NUMBER})(?P<short>M|m|mn|bn|tn)(?!\w)", _large),
    rule(r"(?<!\w)(?P<number>\d{1,3}\.\d{1,3})(?P<short>B)(?!\w)", _large),
    rule(
        r"(?:(?P<whole>\d{1,3})(?:\s{1,2}|-))?(?<![/\d.])(?P<top>\d{1,6})/(?P<bottom>\d{1,6})"
        r"(?:(?P<ordinal>st|nd|rd|th)s?)?(?![\w/])",
        _fraction,
    ),
    rule(r"(?<!\w)x(?=\d{1,3}(?:\s?[,.;)]|\s*\n|$)(?!\s?\.\d))", _times),
    rule(
        rf"(?<![\w.,])(?P<number>{NUMBER})[x×](?=\s(?:[a-z]{{2,12}}er|more|less|worse|as|the|an?)\b)",
        _multiplied,
    ),
    rule(r"(?<![\w.,])(?P<side>\d{3,5})\s?×(?=\s?\d{3,5}(?!\d))", _by),
    rule(r"(?<![\w.,])(?P<side>\d{1,5})(?:x(?=\d)|\sx(?=\s\d))", _by),
    rule(r"(?P<number>\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?:st|nd|rd|th|ST|ND|RD|TH)(?!\w)", _ordinal),
    rule(f"[-−](?P<power>[{SUPERSCRIPTS}]{{1,4}})", _negative_power),
    rule(f"[{SUPERSCRIPTS}]{{1,4}}", _power),
)
PLAIN = rule(rf"{SIGN}(?:{NUMBER}|\.\d{{1,40}})", _plain)
