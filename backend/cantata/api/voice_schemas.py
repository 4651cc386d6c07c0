"""Voices and the consents to them, as clients see them."""

from __future__ import annotations

from typing import Literal

from cantata.api.schemas import WireModel


class ConsentObject(WireModel):
    """A consent that is kept with a voice."""

    kind: Literal["attest", "spoken"]
    by: str
    statement: str
    given_at: int
    """Unix time."""
    heard: str | None
    """What was heard of a spoken statement."""


class ConsentRequest(WireModel):
    """The answer to POST /v1/audio/voices/consents: what an upload needs."""

    object: Literal["audio.voice.consent"] = "audio.voice.consent"
    mode: Literal["none", "attest", "spoken"]
    statement: str | None
    """attest: what `attested_by` answers for. spoken: what the speaker has to say."""
    id: str | None
    """spoken: for `consent_id`, once."""
    valid_s: float | None
    """Seconds until the statement expires."""


class VoiceObject(WireModel):
    """An entry of GET /v1/audio/voices."""

    id: str
    name: str
    description: str
    gender: str | None
    aliases: list[str]
    """Other ids that mean this voice."""
    kind: Literal["stock", "uploaded"]
    """stock: comes with the model."""
    model: str | None
    """None for an uploaded voice that no served model can follow."""
    created_at: int | None = None
    """Unix time of the upload."""
    consent: ConsentObject | None = None
    """That is kept with an uploaded voice, if the server asked for one."""


class VoiceList(WireModel):
    """GET /v1/audio/voices; a model's default voice comes first."""

    voices: list[VoiceObject]


class VoiceNames(WireModel):
    """GET /v1/audio/voices?legacy=true: ids."""

    voices: list[str]


class UploadedVoice(WireModel):
    """The answer to POST /v1/audio/voices."""

    object: Literal["audio.voice"] = "audio.voice"
    id: str
    name: str
    description: str
    created_at: int
    """Unix time."""
    duration_s: float
    """Length of the part of the recording that is used."""
    consent: ConsentObject | None = None
    """That is kept with the voice, if the server asked for one."""
    deletion_token: str
    """Deletes the voice on a server that needs no API key; not shown again."""


class DeletedVoice(WireModel):
    """The answer to DELETE /v1/audio/voices/{id}."""

    object: Literal["audio.voice.deleted"] = "audio.voice.deleted"
    id: str
    deleted: Literal[True] = True
