"""SSML's `<say-as>`: a text as the words that it stands for.

Numbers are words of the voice's language by num2words. Letters by name, dates, times and units are
English; other languages keep them as they are written. Where the British differ, `en-GB` has their
words; other tags of English have American ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from cantata.contract.data.languages import get_primary_language
from cantata.text.say_as_date import read_date

_BRITISH = "en-gb"
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
_REPEATED = re.compile(r"(\d)\1\1(?!\1)|(\d)\2|\d")
_TIMES = {2: "double", 3: "triple"}
_DURATION = re.compile(r"(\d{1,4})'\s*(?:(\d{1,2})\")?")


def say_as(text: str, kind: str, form: str, language: str) -> str | None:
    """The words for a text; None if it is not of this kind, or the kind is unknown.

    Args:
        kind: `interpret-as`.
        form: `format`; of dates, the order of day, month and year.
        language: BCP 47, of the voice.
    """
    say = _KINDS.get(kind.strip().lower())
    return say(text.strip(), form.strip().lower(), language.lower()) if say else None


def _spell_number(written: str, language: str, to: str = "cardinal", **options: str) -> str | None:
    """A number in words; None for what is none, or for a language without words here."""
    # Its tables of languages take a tenth of a second.
    from num2words import num2words

    found = _NUMBER.fullmatch(written.replace(",", "").replace(" ", "").replace("\u2212", "-"))
    if found is None:
        return None
    plain = found[0].lstrip("+")
    value = float(plain) if "." in plain else int(plain)
    tag = "en" if _is_english(language) else language.replace("-", "_")
    try:
        said = str(num2words(value, lang=tag, to=to, **options))
    except (NotImplementedError, TypeError, OverflowError):
        return None
    # The package's English is British.
    return said.replace(" and ", " ") if _is_american(language) else said


def _read_cardinal(text: str, form: str, language: str) -> str | None:
    return _spell_number(text, language)


def _read_ordinal(text: str, form: str, language: str) -> str | None:
    digits = re.sub(r"(?<=\d)(?:st|nd|rd|th|\.|º|ª)$", "", text)
    return _spell_number(digits, language, "ordinal") if digits.isdecimal() else None


def _read_digits(text: str, form: str, language: str) -> str | None:
    said = [_spell_number(digit, language) for digit in text if digit.isdecimal()]
    return " ".join(one or "" for one in said) or None


def _read_characters(text: str, form: str, language: str) -> str | None:
    said = []
    for character in text:
        if character.isdecimal():
            said.append(_spell_number(character, language) or character)
        elif character in "zZ" and language == _BRITISH:
            said.append("zed")
        elif _is_english(language):
            said.append(_LETTER_NAMES.get(character.lower(), character))
        else:
            said.append(character.upper())
    return ", ".join(one for one in said if one.strip()) or None


def _read_telephone(text: str, form: str, language: str) -> str | None:
    groups = re.findall(r"\d+", text)
    if not groups:
        return None
    say = _read_british_telephone if language == _BRITISH else _read_digits
    said = [say(group, "", language) or group for group in groups]
    plus = "plus " if text.startswith("+") and _is_english(language) else ""
    return plus + ", ".join(said)


def _read_british_telephone(group: str, form: str, language: str) -> str | None:
    """Digits with "oh" and "double"."""
    said = []
    for run in _REPEATED.finditer(group):
        digit = "oh" if run[0][0] == "0" else _spell_number(run[0][0], language) or run[0][0]
        said.append(f"{_TIMES[len(run[0])]} {digit}" if len(run[0]) > 1 else digit)
    return " ".join(said) or None


def _read_date(text: str, form: str, language: str) -> str | None:
    date = read_date(text, form, day_first=language == _BRITISH) if _is_english(language) else None
    if date is None:
        return None
    day = None if date.day is None else _spell_number(str(date.day), language, "ordinal")
    year = None if date.year is None else _spell_number(str(date.year), language, "year")
    if language == _BRITISH and day and date.month:
        said = f"the {day} of {date.month}"
    else:
        said = " ".join(filter(None, (date.month, day)))
    return ", ".join(filter(None, (said, year))) if day else " ".join(filter(None, (said, year)))


def _read_time(text: str, form: str, language: str) -> str | None:
    if not _is_english(language):
        return None
    if duration := _DURATION.fullmatch(text):
        parts = [(duration[1], "minute"), (duration[2], "second")]
        return " ".join(f"{number} {_pluralize(name, number)}" for number, name in parts if number)
    found = _TIME.fullmatch(text)
    if found is None or int(found[1]) > 24 or int(found[2]) > 59:
        return None
    hour, minute = _spell_number(found[1], language) or "", int(found[2])
    said = [hour]
    if minute:
        said.append(("oh " if minute < 10 else "") + (_spell_number(found[2], language) or ""))
    elif not found[4]:
        said.append("o'clock" if 1 <= int(found[1]) <= 12 else "hundred hours")
    if found[3]:
        said.append(f"and {_spell_number(found[3], language)} {_pluralize('second', found[3])}")
    if found[4]:
        said.append("A M" if found[4].lower() == "a" else "P M")
    return " ".join(said)


def _read_currency(text: str, form: str, language: str) -> str | None:
    number = re.search(r"[\d,]+(?:\.\d+)?", text)
    sign = re.sub(r"[\d.,\s]", "", text)
    code = _CURRENCIES.get(sign, sign.upper() or form.upper())
    if number is None or not re.fullmatch("[A-Z]{3}", code):
        return None
    amount = number[0].replace(",", "")
    # A whole number would count cents.
    said = _spell_number(f"{float(amount):.2f}", language, "currency", currency=code)
    return said if said is None else re.sub(r",? zero \w+$", "", said).replace(" sterling", "")


def _read_unit(text: str, form: str, language: str) -> str | None:
    found = re.fullmatch(r"([-\d.,]+)\s*([^\d\s]+)", text)
    if not _is_english(language) or found is None:
        return None
    name = _UNITS.get(found[2].lower())
    number = _spell_number(found[1], language)
    return None if name is None or number is None else f"{number} {_pluralize(name, found[1])}"


def _pluralize(name: str, number: str) -> str:
    return name if number == "1" else _PLURALS.get(name, name + "s")


def _is_english(language: str) -> bool:
    return get_primary_language(language) == "en"


def _is_american(language: str) -> bool:
    return _is_english(language) and language != _BRITISH


_KINDS: Mapping[str, Callable[[str, str, str], str | None]] = {
    "characters": _read_characters,
    "spell-out": _read_characters,
    "verbatim": _read_characters,
    "digits": _read_digits,
    "cardinal": _read_cardinal,
    "number": _read_cardinal,
    "ordinal": _read_ordinal,
    "date": _read_date,
    "time": _read_time,
    "telephone": _read_telephone,
    "currency": _read_currency,
    "unit": _read_unit,
}
KINDS = tuple(_KINDS)
"""Values of `interpret-as`."""
