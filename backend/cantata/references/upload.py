"""Checks the fields of an uploaded voice. They are only data: no name from a client ever becomes a
path."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from cantata.contract.data.errors import InvalidRequest
from cantata.references.consent import ConsentRecord

MAX_NAME_CHARACTERS = 64
MAX_CONSENT_CHARACTERS = 256
MAX_TEXT_CHARACTERS = 1000
ID_PREFIX = "voice_"

_NAME_PUNCTUATION = " .-_'"
_NO = frozenset({"false", "no", "0", "off", "none", "null"})


@dataclass(frozen=True, slots=True)
class VoiceUpload:
    """The fields that come with a recording."""

    name: str
    consent: str
    """`true`, or the name of the client's record of the speaker's consent."""
    transcript: str | None
    description: str
    record: ConsentRecord | None = None
    """What the server asked for beside `consent`."""


def check_upload(
    name: str, consent: str, transcript: str | None, description: str | None
) -> VoiceUpload:
    """Validate the words of an upload; empty optional ones count as absent. Raises InvalidRequest:
    names the form's field at fault."""
    return VoiceUpload(
        _check_name(name),
        _check_consent(consent),
        _check_text(transcript or "", "ref_text") or None,
        _check_text(description or "", "speaker_description"),
    )


def fold(name: str) -> str:
    """The form of a voice's name in which names are compared."""
    return unicodedata.normalize("NFKC", name).casefold()


def _check_name(name: str) -> str:
    name = unicodedata.normalize("NFC", name).strip()
    if not 1 <= len(name) <= MAX_NAME_CHARACTERS:
        raise InvalidRequest(
            f"name has {len(name)} characters; valid: 1 to {MAX_NAME_CHARACTERS}", "name"
        )
    for character in name:
        # L: letters, M: accents that join them, N: digits.
        if unicodedata.category(character)[0] not in "LMN" and character not in _NAME_PUNCTUATION:
            raise InvalidRequest(
                f"name contains {character!r}; valid: letters, digits, spaces and . - _ '", "name"
            )
    if not any(character.isalnum() for character in name):
        raise InvalidRequest("name needs a letter or a digit", "name")
    if fold(name).startswith(ID_PREFIX):
        raise InvalidRequest(f"name must not begin with {ID_PREFIX!r}, as ids do", "name")
    return name


def _check_consent(consent: str) -> str:
    consent = _check_text(consent, "consent", MAX_CONSENT_CHARACTERS)
    if not consent or consent.casefold() in _NO:
        raise InvalidRequest(
            "consent must be given: 'true' when the speaker has agreed to this use of the voice, "
            "or the name of your record of it",
            "consent",
        )
    return consent


def _check_text(text: str, param: str, limit: int = MAX_TEXT_CHARACTERS) -> str:
    text = " ".join(text.split())
    if len(text) > limit:
        raise InvalidRequest(f"{param} has {len(text)} characters; valid: up to {limit}", param)
    # C: control, format, private and unassigned characters, and halves of surrogate pairs.
    if any(unicodedata.category(character) in ("Cc", "Cs", "Cn") for character in text):
        raise InvalidRequest(f"{param} contains characters that are not text", param)
    return text
