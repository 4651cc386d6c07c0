"""Tags of languages, and how texts in them follow each other: not all have spaces between words."""

from __future__ import annotations

import re
from collections.abc import Iterable

SPACELESS = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3000-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff"
)
"""Characters of scripts without spaces between words, for classes of regular expressions: Thai,
Lao, Tibetan, Burmese, Khmer, kana, Chinese characters, and their punctuation."""
_SPACELESS = re.compile(f"[{SPACELESS}]")
_SPACELESS_LANGUAGES = frozenset(
    ("zh", "cmn", "yue", "wuu", "nan", "hak", "ja", "th", "lo", "my", "km", "bo")
)


def get_primary_language(tag: str) -> str:
    """The language of a BCP 47 tag, without its region or script: `pt` of `pt-BR` or `pt_BR`."""
    return tag.lower().replace("_", "-").partition("-")[0]


def has_language(tags: Iterable[str], wanted: str) -> bool:
    """Whether one of some BCP 47 tags is of the wanted language; dialects do not matter."""
    return get_primary_language(wanted) in map(get_primary_language, tags)


def choose_separator(before: str, after: str, language: str = "") -> str:
    """What stands between two texts that follow each other: a space, or nothing.

    In a language without spaces, foreign words still have one between them; in others, two
    passages of such a language have none.

    Args:
        before: the earlier text; only its last character matters.
        after: the later one; only its first character matters.
        language: BCP 47 tag of the later one; empty: unknown.
    """
    if not before or not after:
        return ""
    spaceless = [_SPACELESS.match(one) is not None for one in (before[-1], after[0])]
    if get_primary_language(language) in _SPACELESS_LANGUAGES:
        return " " if after[0].isalnum() and not any(spaceless) else ""
    return "" if all(spaceless) else " "


def join_texts(texts: Iterable[tuple[str, str]]) -> str:
    """One text of several that follow each other, each with the tag of its language."""
    joined: list[str] = []
    for text, language in texts:
        if text:
            joined += [choose_separator(joined[-1] if joined else "", text, language), text]
    return "".join(joined)
