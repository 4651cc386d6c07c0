"""SSML's `<say-as>`: a text as the words that it stands for.

Numbers are words of the model's language by num2words. Letters by name, dates, telephone numbers
and units are English; other languages keep them as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_LETTER_NAMES: Mapping[str, str] = {
    "a": "ay",
    "b": "bee",
    "c": "see",
    "d": "dee",
    "e": "ee",
    "f": "eff",
    "g": "jee",
    "h": "aitch",
    "i": "eye",
    "j": "jay",
    "k": "kay",
    "l": "ell",
    "m": "em",
    "n": "en",
    "o": "oh",
    "p": "pee",
    "q": "cue",
    "r": "are",
    "s": "ess",
    "t": "tee",
    "u": "you",
    "v": "vee",
    "w": "double you",
    "x": "ex",
    "y": "why",
    "z": "zee",
    ".": "dot",
    "-": "dash",
    "_": "underscore",
    "@": "at",
    "/": "slash",
    "#": "hash",
    "&": "and",
    "+": "plus",
    "*": "star",
    "%": "percent",
}
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_DATE_FORMATS = ("mdy", "dmy", "ymd", "ydm", "md", "dm", "ym", "my", "y", "m", "d")
_UNITS: Mapping[str, str] = {
    "km": "kilometer",
    "m": "meter",
    "cm": "centimeter",
    "mm": "millimeter",
    "mi": "mile",
    "ft": "foot",
    "in": "inch",
    "yd": "yard",
    "kg": "kilogram",
    "g": "gram",
    "mg": "milligram",
    "lb": "pound",
    "oz": "ounce",
    "l": "liter",
    "ml": "milliliter",
    "s": "second",
    "sec": "second",
    "ms": "millisecond",
    "min": "minute",
    "h": "hour",
    "hr": "hour",
    "hz": "hertz",
    "khz": "kilohertz",
    "mhz": "megahertz",
    "w": "watt",
    "kw": "kilowatt",
    "v": "volt",
    "kb": "kilobyte",
    "mb": "megabyte",
    "gb": "gigabyte",
    "%": "percent",
    "°c": "degree Celsius",
    "°f": "degree Fahrenheit",
    "kwh": "kilowatt hour",
}
_PLURALS: Mapping[str, str] = {
    "foot": "feet",
    "inch": "inches",
    "hertz": "hertz",
    "kilohertz": "kilohertz",
    "megahertz": "megahertz",
    "percent": "percent",
    "degree Celsius": "degrees Celsius",
    "degree Fahrenheit": "degrees Fahrenheit",
}
_CURRENCIES: Mapping[str, str] = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR"}
_NUMBER = re.compile(r"[-+\u2212]?\d{1,15}(?:\.\d{1,9})?")
_TIME = re.compile(r"(\d{1,2})[:.](\d{2})(?::(\d{2}))?\s*(?:([ap])\.?m?\.?)?", re.IGNORECASE)
_DURATION = re.compile(r"(\d{1,4})'\s*(?:(\d{1,2})\")?")


def say_as(text: str, kind: str, form: str, language: str) -> str | None:
    """The words for a text; None if it is not of this kind, or the kind is unknown.

    Args:
        text: between the tags.
        kind: `interpret-as`.
        form: `format`; of dates, the order of day, month and year.
        language: BCP 47, of the model.
    """
    say = _KINDS.get(kind.strip().lower())
    return say(text.strip(), form.strip().lower(), language.lower()) if say else None


def _number(written: str, language: str, to: str = "cardinal", **options: str) -> str | None:
    """A number in words; None for what is none, or for a language without words here."""
    # Its tables of languages take a tenth of a second.
    from num2words import num2words

    found = _NUMBER.fullmatch(written.replace(",", "").replace(" ", "").replace("\u2212", "-"))
    if found is None:
        return None
    plain = found[0].lstrip("+")
    value = float(plain) if "." in plain else int(plain)
    try:
        said = num2words(value, lang=language.replace("-", "_"), to=to, **options)
    except (NotImplementedError, TypeError, OverflowError):
        return None
    return str(said)


def _cardinal(text: str, form: str, language: str) -> str | None:
    return _number(text, language)


def _ordinal(text: str, form: str, language: str) -> str | None:
    digits = re.sub(r"(?<=\d)(?:st|nd|rd|th|\.|º|ª)$", "", text)
    return _number(digits, language, "ordinal") if digits.isdecimal() else None


def _digits(text: str, form: str, language: str) -> str | None:
    said = [_number(digit, language) for digit in text if digit.isdecimal()]
    return " ".join(one or "" for one in said) or None


def _characters(text: str, form: str, language: str) -> str | None:
    said = []
    for character in text:
        if character.isdecimal():
            said.append(_number(character, language) or character)
        elif _is_english(language):
            said.append(_LETTER_NAMES.get(character.lower(), character))
        else:
            said.append(character.upper())
    return ", ".join(one for one in said if one.strip()) or None


def _telephone(text: str, form: str, language: str) -> str | None:
    groups = re.findall(r"\d+", text)
    if not groups:
        return None
    said = [_digits(group, "", language) or group for group in groups]
    plus = "plus " if text.startswith("+") and _is_english(language) else ""
    return plus + ", ".join(said)


def _date(text: str, form: str, language: str) -> str | None:
    fields = re.findall(r"\d+", text)
    if not _is_english(language) or not fields:
        return None
    order = form if form in _DATE_FORMATS else ("ymd" if len(fields[0]) == 4 else "mdy")
    if len(fields) == 1 and len(fields[0]) == 8 and len(order) == 3:
        cuts = (4, 2, 2) if order[0] == "y" else (2, 2, 4)
        whole, fields = fields[0], []
        for cut in cuts:
            fields.append(whole[:cut])
            whole = whole[cut:]
    if len(fields) != len(order):
        return None
    return _say_date(dict(zip(order, map(int, fields), strict=True)), language)


def _say_date(date: Mapping[str, int], language: str) -> str | None:
    day, month, year = date.get("d"), date.get("m"), date.get("y")
    if not (day is None or 1 <= day <= 31) or not (month is None or 1 <= month <= 12):
        return None
    said = [] if month is None else [_MONTHS[month - 1]]
    if day is not None:
        said.append(_number(str(day), language, "ordinal") or str(day))
    if year is not None:
        years = _number(str(year), language, "year") or str(year)
        said.append(f", {years}" if said else years)
    return " ".join(said).replace(" ,", ",")


def _time(text: str, form: str, language: str) -> str | None:
    if not _is_english(language):
        return None
    if duration := _DURATION.fullmatch(text):
        parts = [(duration[1], "minute"), (duration[2], "second")]
        return " ".join(f"{number} {_plural(name, number)}" for number, name in parts if number)
    found = _TIME.fullmatch(text)
    if found is None or int(found[1]) > 24 or int(found[2]) > 59:
        return None
    hour, minute = _number(found[1], language) or "", int(found[2])
    said = [hour]
    if minute:
        said.append(("oh " if minute < 10 else "") + (_number(found[2], language) or ""))
    elif not found[4]:
        said.append("o'clock" if 1 <= int(found[1]) <= 12 else "hundred hours")
    if found[3]:
        said.append(f"and {_number(found[3], language)} {_plural('second', found[3])}")
    if found[4]:
        said.append("A M" if found[4].lower() == "a" else "P M")
    return " ".join(said)


def _currency(text: str, form: str, language: str) -> str | None:
    number = re.search(r"[\d,]+(?:\.\d+)?", text)
    sign = re.sub(r"[\d.,\s]", "", text)
    code = _CURRENCIES.get(sign, sign.upper() or form.upper())
    if number is None or not re.fullmatch("[A-Z]{3}", code):
        return None
    amount = number[0].replace(",", "")
    # A whole number would count cents.
    said = _number(f"{float(amount):.2f}", language, "currency", currency=code)
    return said if said is None else re.sub(r",? zero \w+$", "", said)


def _unit(text: str, form: str, language: str) -> str | None:
    found = re.fullmatch(r"([-\d.,]+)\s*([^\d\s]+)", text)
    if not _is_english(language) or found is None:
        return None
    name = _UNITS.get(found[2].lower())
    number = _number(found[1], language)
    return None if name is None or number is None else f"{number} {_plural(name, found[1])}"


def _plural(name: str, number: str) -> str:
    return name if number == "1" else _PLURALS.get(name, name + "s")


def _is_english(language: str) -> bool:
    return language.split("-")[0] == "en"


_KINDS: Mapping[str, Callable[[str, str, str], str | None]] = {
    "characters": _characters,
    "spell-out": _characters,
    "verbatim": _characters,
    "digits": _digits,
    "cardinal": _cardinal,
    "number": _cardinal,
    "ordinal": _ordinal,
    "date": _date,
    "time": _time,
    "telephone": _telephone,
    "currency": _currency,
    "unit": _unit,
}
KINDS = tuple(_KINDS)
"""Values of `interpret-as`."""
