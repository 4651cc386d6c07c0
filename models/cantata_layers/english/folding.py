# ruff: noqa: RUF001 (dashes, primes and signs that look alike are what this file is about)
"""Folds any Unicode text to the characters that the rules know, keeping the caller's offsets.

Compatibility forms and accents are folded (NFKD). Decimal digits of every script become ASCII
digits. Typographic quotes and foreign full stops become ASCII ones. Line breaks that were escaped
once too often (a backslash and an n) become line breaks. Letters of other scripts, emoji and
characters without a spoken form become spaces, so they are not spoken. Greek letters are kept,
since single ones are read by name. The content of a `[[...]]` override is unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from cantata_layers.english.latex import COMMANDS, SILENT

SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
"""Not folded: a power is not a digit of the number before it."""

GREEK = "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλνξοπρςστυφχψω"

OVERRIDE = r"\[\[(?P<phones>[^\[\]]{0,2000})\]\]"
"""The caller's own phones. The content is not folded, because folding would destroy IPA."""

_KEPT = frozenset(SUPERSCRIPTS + GREEK + "€£¥₹₩₽₺₪₫₱₦฿₿₴₵₸¢°×÷±–—−≈≠≤≥‰§¶©√∞∑∫∂•→µ")
_SPECIAL = {
    **dict.fromkeys("‘’‚‛`´ʼ′", "'"),
    **dict.fromkeys("“”„‟«»″", '"'),
    **dict.fromkeys("‐‑⁃﹣", "-"),
    **dict.fromkeys("―‒⸺", "—"),
    **dict.fromkeys("。｡܂።۔।", "."),
    **dict.fromkeys("、،､", ","),
    **dict.fromkeys("؟⁇", "?"),
    **dict.fromkeys("؛", ";"),
    **dict.fromkeys("·∙‧▪◦●", "•"),
    **dict.fromkeys("∕⁄", "/"),
    **dict.fromkeys("\u2028\u2029\x85\x0b\x0c", "\n"),
    "™": " ",
    "№": "No.",
    "μ": "µ",
    "∆": "Δ",
    "∶": ":",
    "ß": "ss",
    "ẞ": "SS",
    "æ": "ae",
    "Æ": "Ae",
    "œ": "oe",
    "Œ": "Oe",
    "ø": "o",
    "Ø": "O",
    "đ": "d",
    "Đ": "D",
    "ð": "th",
    "Ð": "Th",
    "þ": "th",
    "Þ": "Th",
    "ł": "l",
    "Ł": "L",
    "ı": "i",
    "ŋ": "ng",
    "ħ": "h",
}
# Deleted outright: marks, and the joiners and selectors inside words and emoji.
_DROPPED_CATEGORIES = frozenset({"Mn", "Me", "Cf"})
_OVERRIDE = re.compile(OVERRIDE)
_ESCAPED_BREAK = re.compile(r"\\{1,2}(?P<letter>[nrt])(?P<rest>[A-Za-z]{0,20})", re.ASCII)
_WINDOWS_PATH = re.compile(
    r"(?<![A-Za-z])[A-Za-z]:(?:\\{1,2}[\w.-]{1,60}){1,20}|\\\\\w[\w.-]{0,60}(?:\\[\w.-]{1,60}){1,20}",
    re.ASCII,
)
# Thousands separators outside American English: "10 000" with a thin space, and "10'000".
_GROUP_MARK = re.compile(r"(?<=\d)[\u00a0\u2009\u202f'’](?=\d{3}(?!\d))")


@dataclass(frozen=True, slots=True)
class Folded:
    """Folded text; `origin[i]` is the caller's offset of the character at i."""

    text: str
    origin: tuple[int, ...]
    source: str

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Maps a non-empty range [start, end) of folded offsets to the caller's offsets.

        Marks after the last character belong to it.
        """
        first, last = self.origin[start], self.origin[end - 1] + 1
        while last < len(self.source) and unicodedata.category(self.source[last]) in ("Mn", "Me"):
            last += 1
        return first, last


def fold(text: str) -> Folded:
    kept = {place for found in _OVERRIDE.finditer(text) for place in range(*found.span())}
    group_marks = {found.start() for found in _GROUP_MARK.finditer(text)}
    escapes = _escaped_breaks(text)
    pieces: list[str] = []
    origin: list[int] = []
    last = ""
    for index, char in enumerate(text):
        if index in group_marks:
            piece = ","
        elif index in escapes:
            piece = escapes[index]
        elif index in kept or (char.isascii() and char.isprintable()):
            piece = char
        else:
            piece = _fold_char(char)
        if len(piece) > 1 and "/" in piece and last.isalnum():
            # "3½": the fraction's numerator must not merge with the digits before it.
            piece = " " + piece
        pieces.append(piece)
        last = piece[-1:] or last
        origin.extend([index] * len(piece))
    return Folded("".join(pieces), tuple(origin), text)


def _escaped_breaks(text: str) -> dict[int, str]:
    """What each character of a `\\n` or `\\t` stands for that was escaped once too often.

    The same characters may begin a command of LaTeX or a folder of a Windows path.
    """
    if "\\" not in text:
        return {}
    paths = {place for found in _WINDOWS_PATH.finditer(text) for place in range(*found.span())}
    stands_for: dict[int, str] = {}
    for found in _ESCAPED_BREAK.finditer(text):
        name = found["letter"] + found["rest"]
        if found.start() in paths or name in COMMANDS or name in SILENT:
            continue
        letter = found.start("letter")
        stands_for |= dict.fromkeys(range(found.start(), letter + 1), "")
        stands_for[found.start()] = " " if found["letter"] == "t" else "\n"
    return stands_for


def _fold_char(char: str) -> str:
    special = _SPECIAL.get(char)
    if special is not None:
        return special
    if char in SUPERSCRIPTS or char in _KEPT:
        return char
    if unicodedata.category(char) in _DROPPED_CATEGORIES:
        return ""
    if char.isspace() or unicodedata.category(char) == "Cc":
        return "\n" if char in "\n\r" else " "
    return "".join(map(_fold_part, unicodedata.normalize("NFKD", char))) or " "


def _fold_part(char: str) -> str:
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    if char.isascii() and char.isprintable():
        return char
    special = _SPECIAL.get(char)
    if special is not None:
        return special
    if char in _KEPT:
        return char
    return "" if unicodedata.category(char) in _DROPPED_CATEGORIES else " "
