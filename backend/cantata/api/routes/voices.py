"""POST /v1/audio/voices and DELETE /v1/audio/voices/{name}: custom voices."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, File, Form, Header, Request, UploadFile

from cantata.api.access.api_keys import is_local_program
from cantata.api.access.security import has_key
from cantata.api.context import ApiContext, Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import ERRORS
from cantata.api.speech.verification import check_consent
from cantata.api.voice_schemas import (
    ConsentObject,
    ConsentRequest,
    DeletedVoice,
    UploadedVoice,
    VoiceObject,
)
from cantata.contract.data.errors import (
    Forbidden,
    PayloadTooLarge,
    UploadNotFound,
    VoiceExists,
    VoiceNotFound,
)
from cantata.contract.data.request import ReferenceAudio
from cantata.contract.service import SpeechModel
from cantata.references.consent import ATTESTATION, VALID_S
from cantata.references.stored import StoredVoice, Voices, digest, is_token_of, make_token
from cantata.references.upload import check_upload

logger = logging.getLogger(__name__)
router = APIRouter(prefix="/v1/audio", tags=["voices"], route_class=CheckedRoute, responses=ERRORS)


@router.post("/voices")
async def upload_voice(
    context: Context,
    name: Annotated[str, Form()],
    audio_sample: Annotated[UploadFile, File()],
    consent: Annotated[str, Form()],
    ref_text: Annotated[str | None, Form()] = None,
    speaker_description: Annotated[str | None, Form()] = None,
    attested_by: Annotated[str | None, Form()] = None,
    consent_id: Annotated[str | None, Form()] = None,
    consent_audio: Annotated[UploadFile | None, File()] = None,
) -> UploadedVoice:
    """Store a voice, from a recording of 1 to 60 s, of which the first 15 s are used."""
    store = _store(context)
    upload = check_upload(name, consent, ref_text, speaker_description)
    await store.refresh(now=True)
    _check_free(context, store, upload.name)
    reference = await _decode(context, audio_sample, upload.transcript, "audio_sample")
    spoken = None
    if consent_audio is not None:
        spoken = await _decode(context, consent_audio, None, "consent_audio")
    record = await check_consent(context, reference, attested_by, consent_id, spoken)
    upload = replace(upload, record=record)
    token = make_token()
    voice = await store.add(upload, reference, digest(token))
    logger.info("%s was uploaded", voice.id)
    duration_s = len(reference.samples) / reference.sample_rate
    return UploadedVoice(
        id=voice.id,
        name=voice.name,
        description=voice.description,
        created_at=voice.created_at,
        duration_s=round(duration_s, 3),
        consent=_build_consent_object(voice),
        deletion_token=token,
    )


@router.post("/voices/consents")
async def ask_for_consent(context: Context) -> ConsentRequest:
    """What an upload needs here beside the client's word."""
    _store(context)
    mode = context.settings.references.consent
    if mode != "spoken":
        statement = ATTESTATION if mode == "attest" else None
        return ConsentRequest(mode=mode, statement=statement, id=None, valid_s=None)
    made = context.statements.make()
    return ConsentRequest(mode=mode, statement=made.text, id=made.id, valid_s=VALID_S)


@router.delete("/voices/{name}")
async def delete_voice(
    name: str,
    context: Context,
    request: Request,
    x_deletion_token: Annotated[str | None, Header()] = None,
) -> DeletedVoice:
    """Delete an uploaded voice, by id or name. Running requests with it finish.

    Without an API key it needs the voice's `deletion_token`, except from a program on the server's
    own machine.
    """
    store = _store(context)
    await store.refresh(now=True)
    found = store.find(name)
    if found is None:
        raise UploadNotFound(f"no uploaded voice {name!r}", "voice")
    scope = request.scope
    authorised = has_key(scope) or is_local_program(scope)
    if not (authorised or is_token_of(found.deletion_digest, x_deletion_token)):
        shown = "is not this voice's" if x_deletion_token else "is missing"
        raise Forbidden(
            f"the voice {found.name!r} can be deleted with the deletion_token that its upload "
            f"returned; the header x-deletion-token {shown}"
        )
    # By id: meanwhile another voice may have taken the name.
    voice = await store.remove(found.id)
    logger.info("%s was deleted", voice.id)
    return DeletedVoice(id=voice.id)


async def list_uploaded_voices(
    context: ApiContext, served: Iterable[SpeechModel]
) -> list[VoiceObject]:
    """The uploaded voices, once for each model that supports them."""
    if context.voices is None:
        return []
    await context.voices.refresh()
    kept = context.voices.voices
    capable: list[str | None] = [m.name for m in served if m.capabilities.references]
    return [_build_voice_object(voice, model) for model in capable or [None] for voice in kept]


def _store(context: ApiContext) -> Voices:
    if context.voices is None:
        raise Forbidden("this server accepts no uploaded voices")
    return context.voices


def _check_free(context: ApiContext, store: Voices, name: str) -> None:
    """Reject a taken name before decoding the recording; the store checks again."""
    for model in context.service.models.values():
        try:
            existing = model.get_voice(name)
        except VoiceNotFound:
            continue
        raise VoiceExists(
            f"{name!r} already means the voice {existing.id!r} of {model.name}", "name"
        )
    if store.find(name) is not None:
        raise VoiceExists(f"there is already a voice {name!r}; delete it first", "name")


async def _decode(
    context: ApiContext, file: UploadFile, transcript: str | None, param: str
) -> ReferenceAudio:
    max_bytes = context.settings.references.max_bytes
    data = await file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise PayloadTooLarge(f"{param} is larger than {max_bytes} bytes", param)
    return await context.references.decode(data, transcript, param)


def _build_consent_object(voice: StoredVoice) -> ConsentObject | None:
    record = voice.consent_record
    return None if record is None else ConsentObject(**record.model_dump())


def _build_voice_object(voice: StoredVoice, model: str | None) -> VoiceObject:
    return VoiceObject(
        id=voice.id,
        name=voice.name,
        description=voice.description,
        gender=None,
        aliases=[],
        kind="uploaded",
        model=model,
        created_at=voice.created_at,
        consent=_build_consent_object(voice),
    )
