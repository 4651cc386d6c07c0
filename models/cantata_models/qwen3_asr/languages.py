"""The languages that Qwen3-ASR knows, by the names that it was trained with."""

from __future__ import annotations

from collections.abc import Mapping

LANGUAGES: Mapping[str, str] = {
    "Chinese": "zh",
    "English": "en",
    "Cantonese": "yue",
    "Arabic": "ar",
    "German": "de",
    "French": "fr",
    "Spanish": "es",
    "Portuguese": "pt",
    "Indonesian": "id",
    "Italian": "it",
    "Korean": "ko",
    "Russian": "ru",
    "Thai": "th",
    "Vietnamese": "vi",
    "Japanese": "ja",
    "Turkish": "tr",
    "Hindi": "hi",
    "Malay": "ms",
    "Dutch": "nl",
    "Swedish": "sv",
    "Danish": "da",
    "Finnish": "fi",
    "Polish": "pl",
    "Czech": "cs",
    "Filipino": "fil",
    "Persian": "fa",
    "Greek": "el",
    "Romanian": "ro",
    "Hungarian": "hu",
    "Macedonian": "mk",
}
"""Name -> BCP 47 tag, in the publisher's order: the most usual first."""
NAMES: Mapping[str, str] = {tag: name for name, tag in LANGUAGES.items()}
"""The other way round."""
_ALIASES = {"cmn": "zh", "tl": "fil"}
"""Subtags that mean the same language -> the tag above."""


def find_name(tag: str) -> str | None:
    """The name of a BCP 47 tag's language, whatever its region and script; None: it is unknown."""
    primary = tag.replace("_", "-").split("-")[0].lower()
    return NAMES.get(_ALIASES.get(primary, primary))
