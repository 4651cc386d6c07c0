"""Consents to the use of a voice: what has to be said, by whom, and what is kept of it."""

from __future__ import annotations

import secrets
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from cantata.contract.data.errors import ConsentMissing, Overloaded

ConsentMode = Literal["none", "attest", "spoken"]
"""none: the word of the client. attest: that of a person, by name. spoken: the speaker's own."""

ATTESTATION = "The speaker has agreed that speech is made in this voice, and I answer for that."
_SPOKEN = "I agree that this computer speaks in my voice. My words are {}, {}, {} and {}."
_WORDS = (
    *("river", "garden", "window", "apple", "mountain", "paper", "silver", "winter", "bottle"),
    *("yellow", "kitchen", "summer", "planet", "rabbit", "market", "forest", "candle", "island"),
)
_WORDS_ASKED = 4
VALID_S = 600.0
"""Seconds within which a statement must be spoken."""
_MAX_OPEN = 1000
_MAX_NAME_CHARACTERS = 100
_MIN_SHARE = 0.75
"""Of a statement's words that must be heard: recognizers make mistakes."""
_MIN_WORDS = _WORDS_ASKED - 1


class ConsentRecord(BaseModel):
    """What is kept with a voice, and deleted with it."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    kind: Literal["attest", "spoken"]
    by: str
    """Who gave it, by their own word."""
    statement: str
    given_at: int
    """Unix time."""
    heard: str | None = None
    """What the recognizer wrote down of a spoken statement."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that a speaker is to speak, once."""

    id: str
    text: str
    words: tuple[str, ...]
    """That nobody could have recorded before."""
    expires_at: float
    """By the clock of `Statements`."""

    def is_heard_in(self, heard: list[tuple[str, bool]]) -> bool:
        """Whether enough of it was heard. `heard`: each of its words, and whether it was heard."""
        asked = sum(was for word, was in heard if word.strip(".,").casefold() in self.words)
        share = sum(was for _, was in heard) / max(len(heard), 1)
        return share >= _MIN_SHARE and asked >= _MIN_WORDS


class Statements:
    """Statements that have not been spoken yet, in this server's memory. `clock`: monotonic
    seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[str, Statement] = {}

    def make(self) -> Statement:
        """A new one. Raises Overloaded: too many wait to be spoken."""
        now = self._clock()
        self._open = {id: one for id, one in self._open.items() if one.expires_at > now}
        if len(self._open) >= _MAX_OPEN:
            raise Overloaded("too many statements of consent wait to be spoken", VALID_S)
        words = tuple(secrets.SystemRandom().sample(_WORDS, _WORDS_ASKED))
        id = f"consent_{secrets.token_hex(16)}"
        made = Statement(id, _SPOKEN.format(*words), words, now + VALID_S)
        self._open[id] = made
        return made

    def take(self, id: str) -> Statement:
        """The statement of this id, which is over with that. Raises ConsentMissing: there is none,
        or it has expired or been taken."""
        found = self._open.pop(id, None)
        if found is None or found.expires_at <= self._clock():
            raise ConsentMissing(
                f"consent_id {id!r} is no open statement; get one from POST "
                f"/v1/audio/voices/consents and send it within {VALID_S:g} s, once",
                "consent_id",
            )
        return found


def check_attestation(name: str | None, param: str = "attested_by") -> str:
    """The name of the person who answers for a voice. Raises ConsentMissing: there is none, or it
    is not a name."""
    name = " ".join(unicodedata.normalize("NFC", name or "").split())
    letters = sum(character.isalpha() for character in name)
    printable = all(unicodedata.category(one)[0] != "C" for one in name)
    if letters < 2 or len(name) > _MAX_NAME_CHARACTERS or not printable:
        raise ConsentMissing(
            f"this server asks for a person's name in {param}, with 2 letters or more and up to "
            f"{_MAX_NAME_CHARACTERS} characters: who answers for the consent of the speaker",
            param,
        )
    return name


def record_attestation(name: str | None) -> ConsentRecord:
    """The attestation of the person of this name. Raises ConsentMissing: it is not a name."""
    by = check_attestation(name)
    return ConsentRecord(kind="attest", by=by, statement=ATTESTATION, given_at=int(time.time()))
