# ruff: noqa: RUF001 (dashes, primes and signs that look alike are what this file is about)
"""Rules for punctuation, symbols, line breaks, emoticons and markup."""

from __future__ import annotations

import re
import unicodedata

from cantata_layers.english.dashes import Dash, classify
from cantata_layers.english.folding import GREEK
from cantata_layers.english.tokens import Expansion, Pause, Strength, rule, say

_SENTENCE, _CLAUSE = Pause(Strength.SENTENCE), Pause(Strength.CLAUSE)

WRAPPED_LINE = 60
"""In characters. A line at least this long was wrapped for width, not broken by its author."""

_ALWAYS_SAID = {
    "&": "and",
    "%": "percent",
    "@": "at",
    "=": "equals",
    "°": "degrees",
    "×": "times",
    "÷": "divided by",
    "±": "plus or minus",
    "≈": "approximately",
    "≠": "does not equal",
    "≤": "is at most",
    "≥": "is at least",
    "§": "section",
    "¶": "paragraph",
    "©": "copyright",
    "√": "square root of",
    "∞": "infinity",
    "€": "euros",
    "£": "pounds",
    "¥": "yen",
    "₹": "rupees",
    "₩": "won",
    "¢": "cents",
    "$": "dollar",
    "µ": "mu",
    "‰": "per mille",
    "∑": "sum of",
    "∫": "integral of",
    "∂": "partial",
    "−": "minus",
    "→": "to",
}
_OPERATORS = {
    ">=": "is at least",
    "<=": "is at most",
    "!=": "does not equal",
    "==": "equals",
    "->": "to",
    "=>": "to",
    "&&": "and",
    "||": "or",
    "+=": "plus equals",
    "-=": "minus equals",
}
_ENTITIES = {"amp": "and", "lt": "less than", "gt": "greater than"}


def _said(match: re.Match[str]) -> Expansion:
    return say(match, _ALWAYS_SAID[match[0]])


def _operator(match: re.Match[str]) -> Expansion:
    return say(match, _OPERATORS[match[0]])


def _skip(match: re.Match[str]) -> Expansion:
    return []


def _clause(match: re.Match[str]) -> Expansion:
    return [_CLAUSE]


def _stop(match: re.Match[str]) -> Expansion:
    return [Pause(Strength.SENTENCE, question="?" in match[0])]


def _ellipsis(match: re.Match[str]) -> Expansion:
    continues = re.compile(r"\s*[a-z]").match(match.string, match.end())
    if "?" in match[0] or not continues:
        return _stop(match)
    return [_CLAUSE]


def _line_break(match: re.Match[str]) -> Expansion:
    """A blank line ends a sentence. So does a short line, unless the next starts in lower case."""
    text, start = match.string, match.start()
    if match[0].count("\n") > 1 or re.compile(r"\s*(?:[-*•]|\d+[.)])\s").match(text, match.end()):
        return [_SENTENCE]
    line_start = text.rfind("\n", max(0, start - WRAPPED_LINE), start) + 1
    short = line_start > 0 or start < WRAPPED_LINE
    continues = re.compile(r"\s*[a-z]").match(text, match.end()) is not None
    return [_SENTENCE] if short and not continues else []


def _dash(match: re.Match[str]) -> Expansion:
    meaning = classify(match.string, match.start(), match.end())
    return [_CLAUSE] if meaning is Dash.PAUSE else say(match, meaning.value)


def _or(match: re.Match[str]) -> Expansion:
    return say(match, "or")


def _greek(match: re.Match[str]) -> Expansion:
    """Reads a single Greek letter by name and skips Greek words."""
    if len(match[0]) > 1:
        return []
    name = unicodedata.name(match[0]).rsplit(" ", 1)[1].lower()
    return say(match, "lambda" if name == "lamda" else name)


def _slash(match: re.Match[str]) -> Expansion:
    """A spaced slash divides numbers. Inside a word it is spoken; between words it is a pause."""
    around = match.string[max(0, match.start() - 2) : match.end() + 2]
    if re.fullmatch(r"\d / \d", around):
        return say(match, "divided by")
    if " / " in around:
        return [_CLAUSE]
    return say(match, "slash") if re.search(r"\w/\w", around) else []


def _dot(match: re.Match[str]) -> Expansion:
    """Reads a full stop without a space after it.

    ".NET" and "node.js" have a dot; "end.Then" lacks a space.
    """
    inside = match.string[match.start() - 1 : match.start()].isalnum()
    ends = inside and match.string[match.end()].isupper()
    return [_SENTENCE] if ends else say(match, "dot")


def _plus(match: re.Match[str]) -> Expansion:
    return say(match, "plus")


def _number(match: re.Match[str]) -> Expansion:
    return say(match, "number")


def _hashtag(match: re.Match[str]) -> Expansion:
    return say(match, "hashtag")


def _sharp(match: re.Match[str]) -> Expansion:
    return say(match, "sharp")


def _about(match: re.Match[str]) -> Expansion:
    return say(match, "about")


def _compare(match: re.Match[str]) -> Expansion:
    return say(match, "less than" if match[0] == "<" else "greater than")


def _times(match: re.Match[str]) -> Expansion:
    return say(match, "times")


def _power(match: re.Match[str]) -> Expansion:
    return say(match, "to the power of")


def _entity(match: re.Match[str]) -> Expansion:
    return say(match, _ENTITIES.get(match["name"], ""))


RULES = (
    rule(r"[ \t]*\n\s*", _line_break),
    rule(r"\s+", _skip),
    rule(r"</?[A-Za-z][\w-]{0,40}(?:\s[^<>\n=]{1,40}=[^<>\n]{0,80})?\s?/?>", _skip),
    rule(r"&(?P<name>[a-z]{2,8}|#\d{1,6});", _entity),
    rule(r"(?<!\w)(?:[:;=8]['o-]?[)(DPp|\]]|:\[(?!\[)|<3|\^_\^)(?!\w)", _skip),
    # Markdown: a rule, a task's box, a footnote's mark, an image's mark, a formula's fence.
    rule(r"={3,80}|\[[ xX]\](?=\s)|\[\^\w{1,20}\]|(?<=\w[.,;:!?])\[\d{1,3}\]", _skip),
    rule(r"(?<=\w)\[\d{1,3}\]|!(?=\[[^\[])|\${2}", _skip),
    rule(r">=|<=|!=|==|->|=>|&&|\|\|(?=\s)|[+-]=", _operator),
    rule(r"(?<=\b[Hh]e)/(?=she\b)|(?<=\b[Hh]is)/(?=hers?\b)|(?<=\b[Hh]im)/(?=her\b)", _or),
    rule(r"(?<=°[CF])/(?=[-−]?\d)", _or),
    rule(r"(?<=\b[Aa]nd)/(?=or\b)", _skip),
    rule(f"[{GREEK}]{{1,100}}", _greek),
    rule(r"[.!?]{0,6}(?:\.\.|…)[.!?…]{0,20}", _ellipsis),
    rule(r"[.!?]*[!?][.!?]*", _stop),
    rule(r"(?:(?<=[A-Za-z])|(?<!\S))\.(?=[A-Za-z])", _dot),
    rule(r"\.", _stop),
    rule(r"[,;:()\[\]{}|•]", _clause),
    rule(r"[–—-]{1,20}", _dash),
    rule(r"\+", _plus),
    rule(r"#(?=[A-Z]{1,3}-\d)", _number),
    rule(r"#(?=\d{0,6}[A-Za-z])", _hashtag),
    rule(r"~(?=\s?\d)", _about),
    rule(r"(?<=\s)[<>](?=\s)|[<>](?=\s?\d)|(?<=\w)[<>](?=\w)", _compare),
    rule(r"(?<=\b[A-G])#(?!\w)", _sharp),
    rule(r"(?<=\d)\*(?=\d)|(?<=\d )\*(?= \d)", _times),
    rule(r"(?<=\w)\^(?=[-−]?\w)", _power),
    rule(r"/", _slash),
    rule(f"[{''.join(_ALWAYS_SAID)}]", _said),
    # The rest is silent: quotes, asterisks, underscores, backticks, backslashes.
    rule(r"[^\w]|_", _skip),
)
