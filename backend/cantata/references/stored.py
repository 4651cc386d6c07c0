"""An uploaded voice in the form in which it is kept, and the token that deletes it.

An upload returns the token once. The server keeps only a digest, so that no token can leak from its
disk or its memory.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import secrets
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import soundfile
from pydantic import BaseModel, ConfigDict

from cantata.contract.data.errors import VoiceExists, VoicesFull
from cantata.contract.data.request import ReferenceAudio
from cantata.references.consent import ConsentRecord
from cantata.references.upload import ID_PREFIX, VoiceUpload, fold

_TOKEN_BYTES = 32


def make_token() -> str:
    """A token that cannot be guessed, valid in a header."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def digest(token: str) -> str:
    """The part of a token that is kept. Tokens are random, so one round without salt suffices."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_token_of(kept: str | None, shown: str | None) -> bool:
    """Whether a token belongs to a digest, checked in constant time. A digest of None has no
    token."""
    return kept is not None and shown is not None and hmac.compare_digest(kept, digest(shown))


MAX_WORDS_BYTES = 64 << 10
MAX_SOUND_BYTES = 8 << 20


class StoredVoice(BaseModel):
    """The content of `voice.json`."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    id: str
    name: str
    created_at: int
    """Unix time."""
    consent: str
    description: str = ""
    transcript: str | None = None
    consent_record: ConsentRecord | None = None
    """None: the server asked for the client's word alone."""
    deletion_digest: str | None = None
    """Digest of the deletion token; None for voices from before there were tokens."""


@dataclass(frozen=True, slots=True)
class StoreLimits:
    voices: int = 100
    total_bytes: int = 600 << 20
    """Bytes of all voices together: enough for 100 of 15 s, stereo, 48 kHz."""

    def check(self, voices: int, total_bytes: int) -> None:
        """Check that another voice fits.

        Args:
            total_bytes: of all of them and the new one.

        Raises:
            VoicesFull: there are too many, or they take too much room.
        """
        if voices >= self.voices:
            raise VoicesFull(f"{self.voices} voices are kept at most; delete one first")
        if total_bytes > self.total_bytes:
            raise VoicesFull(f"uploaded voices may take {self.total_bytes} bytes; delete one first")


class Voices(Protocol):
    """The uploaded voices, as routes use them."""

    @property
    def voices(self) -> tuple[StoredVoice, ...]:
        """All voices, the oldest first."""

    def find(self, name: str) -> StoredVoice | None:
        """The voice with this id or name."""

    async def refresh(self, name: str | None = None, *, now: bool = False) -> None:
        """Learn what other servers have stored or deleted, unless that was done recently.

        Args:
            name: an id or name that is wanted now: one that is not known is a reason to look.
            now: even if it was.

        Raises:
            StorageFailed: the voices cannot be listed.
        """

    async def add(
        self, upload: VoiceUpload, reference: ReferenceAudio, deletion_digest: str
    ) -> StoredVoice:
        """Keep a voice.

        Raises:
            VoiceExists: another has this name.
            VoicesFull: there are too many, or they take too much room.
            NotStored: it cannot be written.
        """

    async def remove(self, name: str) -> StoredVoice:
        """Delete a voice, by id or name. Requests that use it continue.

        Raises:
            UploadNotFound: there is none.
            StorageFailed: it cannot be deleted.
        """

    async def reference(self, voice: StoredVoice) -> ReferenceAudio:
        """A voice's recording.

        Raises:
            UploadNotFound: it has been deleted.
            StorageFailed: it cannot be read.
        """


def make_stored_voice(upload: VoiceUpload, deletion_digest: str) -> StoredVoice:
    return StoredVoice(
        id=f"{ID_PREFIX}{uuid.uuid4().hex}",
        name=upload.name,
        created_at=int(time.time()),
        consent=upload.consent,
        description=upload.description,
        transcript=upload.transcript,
        consent_record=upload.record,
        deletion_digest=deletion_digest,
    )


def find_voice(voices: Iterable[StoredVoice], name: str) -> StoredVoice | None:
    wanted = fold(name)
    return next((v for v in voices if wanted in (v.id, fold(v.name))), None)


def build_name_taken_error(name: str) -> VoiceExists:
    return VoiceExists(f"there is already a voice {name!r}; delete it first", "name")


def encode_wav(reference: ReferenceAudio) -> bytes:
    """A recording as a lossless file."""
    sound = io.BytesIO()
    soundfile.write(sound, reference.samples, reference.sample_rate, format="WAV", subtype="FLOAT")
    return sound.getvalue()


def build_reference(voice: StoredVoice, wav: bytes) -> ReferenceAudio:
    """The recording in such a file. Raises soundfile.LibsndfileError: it is none."""
    samples, sample_rate = soundfile.read(io.BytesIO(wav), dtype="float32", always_2d=True)
    return ReferenceAudio(samples, sample_rate, voice.transcript)
