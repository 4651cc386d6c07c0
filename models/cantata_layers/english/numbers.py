# ruff: noqa: RUF001 (dashes, primes and signs that look alike are what this file is about)
"""Converts numbers to English words: "three thousand four hundred (and) ninety seven".

Of these, "and" is an `AccentWord`, which the British alone say.

It is hand-written because the permissively licensed library takes seconds to import. All functions
take plain values and return lists of lower-case words.
"""

from __future__ import annotations

import re

from cantata_layers.english.tokens import Accent, say_in, word_list

_ONES = word_list(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TENS = word_list("zero ten twenty thirty forty fifty sixty seventy eighty ninety")
_SCALES = [
    "",
    "thousand",
    "million",
    "billion",
    "trillion",
    "quadrillion",
    "quintillion",
    "sextillion",
    "septillion",
    "octillion",
]
_AND = say_in(Accent.BRITISH, "and")
_LIMIT = 1000 ** len(_SCALES)
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def digits(text: str) -> list[str]:
    """Returns the digits of a text one by one, ignoring other characters."""
    return [_ONES[int(char)] for char in text if char.isdigit()]


_REPEATED = re.compile(r"(\d)\1\1(?!\1)|(\d)\2|\d")
_TIMES = {2: "double", 3: "triple"}


def telephone(text: str) -> list[str]:
    """Returns the digits of a group of a telephone number, as each accent says them."""
    said = digits(text)
    british: list[str] = []
    for run in _REPEATED.finditer(text):
        digit = "oh" if run[0][0] == "0" else _ONES[int(run[0][0])]
        british += [_TIMES[len(run[0])], digit] if len(run[0]) > 1 else [digit]
    if british == said:
        return said
    return [*say_in(Accent.AMERICAN, " ".join(said)), *say_in(Accent.BRITISH, " ".join(british))]


def _below_hundred(value: int) -> list[str]:
    if value < 20:
        return [_ONES[value]]
    tens, ones = divmod(value, 10)
    return [_TENS[tens], *([_ONES[ones]] if ones else [])]


def _below_thousand(value: int) -> list[str]:
    hundreds, rest = divmod(value, 100)
    if not hundreds:
        return _below_hundred(rest)
    return [_ONES[hundreds], "hundred", *([*_AND, *_below_hundred(rest)] if rest else [])]


def cardinal(value: int) -> list[str]:
    """Returns a whole number in words, or digit by digit if it is too long to name."""
    if value < 0:
        return ["minus", *cardinal(-value)]
    if value >= _LIMIT:
        return digits(str(value))
    if value < 1000:
        return _below_thousand(value)
    words: list[str] = []
    for power in range(len(_SCALES) - 1, -1, -1):
        group = value // 1000**power % 1000
        if group:
            words += _AND if power == 0 and group < 100 else []
            words += _below_thousand(group) + ([_SCALES[power]] if power else [])
    return words


def ordinal(value: int) -> list[str]:
    """Returns "first", "twenty second" and so on."""
    *head, last = cardinal(value)
    if last in _ORDINALS:
        return [*head, _ORDINALS[last]]
    return [*head, last[:-1] + "ieth" if last.endswith("y") else last + "th"]


def year(value: int) -> list[str]:
    """Returns a year in words: "nineteen oh five", "two thousand (and) nine"."""
    century, rest = divmod(value, 100)
    if not 1100 <= value <= 9999 or (century % 10 == 0 and rest < 10):
        return cardinal(value)
    if rest == 0:
        return [*_below_hundred(century), "hundred"]
    middle = ["oh", _ONES[rest]] if rest < 10 else _below_hundred(rest)
    return [*_below_hundred(century), *middle]


def plural(words: list[str]) -> list[str]:
    """Makes the last word of a number plural: "nineties", "hundreds", "sixes"."""
    *head, last = words
    if last.endswith("y"):
        return [*head, last[:-1] + "ies"]
    return [*head, last + ("es" if last.endswith("x") else "s")]


def canonical(text: str) -> str:
    """Returns a number with a decimal point and no grouping; "1,234.5" and "1.234,5" give the same.

    A comma before the last one or two digits, and points between several groups, are European.
    """
    if re.search(r",\d{1,2}$", text) or text.count(".") > 1:
        text = text.replace(".", "").replace(",", ".")
    return text.replace(",", "").replace(" ", "")


def number(text: str) -> list[str]:
    """Reads a number in digits with an optional sign, grouping and a decimal part."""
    sign = ["minus"] if text[0] in "-−" else []
    whole, _, fraction = canonical(text.lstrip("+-−")).partition(".")
    words = [*sign, *_whole(whole)]
    return [*words, "point", *digits(fraction)] if fraction else words


def _whole(text: str) -> list[str]:
    if not text:
        return ["zero"]
    # A leading zero or many digits mark a code, not a quantity. Check the length before int(),
    # which rejects thousands of digits.
    if (text[0] == "0" and len(text) > 1) or len(text) > 15:
        return digits(text)
    return cardinal(int(text))


def grouped(text: str) -> list[str]:
    """Returns the digits of a name, read like "seven forty seven" and "nineteen eleven"."""
    if text[0] == "0" or len(text) > 4:
        return digits(text)
    if len(text) < 3 or text.endswith("00"):
        return cardinal(int(text))
    head, tail = text[:-2], text[-2:]
    return cardinal(int(head)) + (["oh", *digits(tail[1])] if tail[0] == "0" else number(tail))


def fraction(numerator: int, denominator: int) -> list[str]:
    """Returns "three quarters", "one half", "two fifths", or "x over y" for large denominators."""
    if not 2 <= denominator <= 100 or (numerator > denominator > 10):
        return [*cardinal(numerator), "over", *cardinal(denominator)]
    part = {2: ["half"], 4: ["quarter"]}.get(denominator) or ordinal(denominator)
    if numerator != 1:
        part = ["halves"] if denominator == 2 else plural(part)
    return [*cardinal(numerator), *part]


def quantity(text: str) -> list[str]:
    """Reads a number or a fraction: "three quarters", "two and a half", "two point five".

    A whole number comes before the fraction with spaces or a hyphen between: "2 1/2", "2-1/2".
    """
    top, slash, bottom = text.partition("/")
    if not slash:
        return number(text)
    whole, _, top = top.replace("-", " ").rpartition(" ")
    words = fraction(int(top), int(bottom))
    if not whole.strip():
        return words
    if words[0] == "one" and words[1] != "over":
        words = ["an" if words[1].startswith("e") else "a", *words[1:]]
    return [*number(whole.strip()), "and", *words]


def is_below_one(text: str) -> bool:
    """Whether a text is a fraction without a whole number, such as "3/4"."""
    return re.fullmatch(r"\d{1,6}/\d{1,6}", text) is not None


def roman(text: str) -> int | None:
    """Returns the value of an upper-case Roman numeral, or None for any other text."""
    values = [_ROMAN.get(char, 0) for char in text]
    total = sum(
        -value if following > value else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    )
    return total if 0 < total < 4000 and _to_roman(total) == text else None


def _to_roman(value: int) -> str:
    ones = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
    tens = ("", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC")
    hundreds = ("", "C", "CC", "CCC", "CD", "D", "DC", "DCC", "DCCC", "CM")
    head = "M" * (value // 1000) + hundreds[value // 100 % 10]
    return head + tens[value // 10 % 10] + ones[value % 10]
