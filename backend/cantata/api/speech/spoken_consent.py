"""The consent that comes with a recording: checked as the operator asks for it."""

from __future__ import annotations

import time

from cantata.api.context import ApiContext
from cantata.api.speech.verification import verify_speech
from cantata.contract.data.errors import ConsentMissing, ConsentRefused
from cantata.contract.data.request import ReferenceAudio
from cantata.references.consent import ConsentRecord, check_attestation, record_attestation


async def check_consent(
    context: ApiContext,
    reference: ReferenceAudio,
    attested_by: str | None,
    consent_id: str | None,
    spoken: ReferenceAudio | None,
) -> ConsentRecord | None:
    """The consent to keep with a voice; None: the server asks for none.

    Args:
        context: the server's.
        reference: the voice's recording.
        attested_by: who answers for the consent, or gives it.
        consent_id: of the statement that was spoken.
        spoken: the recording of it.

    Raises:
        ConsentMissing: something that this server asks for is not there, or not valid any more.
        ConsentRefused: other words, or another speaker.
        CantataError: the statement cannot be heard.
    """
    match context.settings.references.consent:
        case "none":
            return None
        case "attest":
            return record_attestation(attested_by)
    by = check_attestation(attested_by)
    if consent_id is None or spoken is None:
        raise ConsentMissing(
            "this server asks for a spoken consent: get a statement from POST "
            "/v1/audio/voices/consents, and send its id as consent_id and the speaker's recording "
            "of it as consent_audio",
            "consent_audio" if consent_id else "consent_id",
        )
    statement = context.statements.take(consent_id)
    await _check_speaker(context, reference, spoken)
    found = await verify_speech(context, statement.text, [spoken.samples], spoken.sample_rate)
    if not statement.is_heard_in([(word.text, word.confidence > 0) for word in found.words]):
        raise ConsentRefused(
            f"the statement was not heard in consent_audio, but: {found.heard!r}; get another and "
            "speak it clearly",
            "consent_audio",
        )
    return ConsentRecord(
        kind="spoken",
        by=by,
        statement=statement.text,
        given_at=int(time.time()),
        heard=found.heard,
    )


def check_recording_consent(
    context: ApiContext, recordings: object | None, attested_by: str | None
) -> None:
    """Whether a request may bring a recording of a speaker with it.

    Raises:
        ConsentMissing: nobody answers for it, or it has to be uploaded with a spoken consent.
    """
    mode = context.settings.references.consent
    if recordings is None or mode == "none":
        return
    if mode == "spoken":
        raise ConsentMissing(
            "this server asks for a spoken consent: upload the voice to /v1/audio/voices with it, "
            "and use its name as voice",
            "ref_audio",
        )
    check_attestation(attested_by)


async def _check_speaker(
    context: ApiContext, reference: ReferenceAudio, spoken: ReferenceAudio
) -> None:
    for model in context.service.models.values():
        is_same = await model.may_be_same_speaker(reference, spoken)
        if is_same:
            return
        if is_same is False:
            raise ConsentRefused(
                "consent_audio is not of the speaker of audio_sample; record both alike",
                "consent_audio",
            )
    raise ConsentRefused(
        "no model of this server tells speakers apart, so it accepts no spoken consent",
        "consent_audio",
    )
