"""The languages of MOSS-TTS-Local: English names, as its prompt holds them, and BCP 47 tags."""

from __future__ import annotations

from collections.abc import Mapping

from cantata.contract.data.errors import InvalidRequest

AUTO = "auto"
LANGUAGES: Mapping[str, str] = {
    "zh": "Chinese",
    "yue": "Cantonese",
    "en": "English",
    "ar": "Arabic",
    "cs": "Czech",
    "da": "Danish",
    "nl": "Dutch",
    "fi": "Finnish",
    "fr": "French",
    "de": "German",
    "el": "Greek",
    "he": "Hebrew",
    "hi": "Hindi",
    "hu": "Hungarian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "mk": "Macedonian",
    "ms": "Malay",
    "fa": "Persian (Farsi)",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "es": "Spanish",
    "sw": "Swahili",
    "sv": "Swedish",
    "tl": "Tagalog",
    "th": "Thai",
    "tr": "Turkish",
    "vi": "Vietnamese",
}
"""Those that the published program offers."""


def language_name(wanted: str | None) -> str | None:
    """Return the name of a language in the prompt; None lets the model detect it.

    Args:
        wanted: a name, a tag, or "Auto", in any case.

    Raises:
        InvalidRequest: there is no such language; lists those that there are.
    """
    if wanted is None or wanted.strip().lower() == AUTO:
        return None
    key = wanted.strip().lower()
    for tag, name in LANGUAGES.items():
        if key in (tag, name.lower()):
            return name
    valid = ", ".join(["Auto", *LANGUAGES.values()])
    raise InvalidRequest(f"language {wanted!r} is not spoken; valid: {valid}", "language")
