"""POST /v1/audio/speech: one text in, sound out while it is made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fastapi import APIRouter
from starlette.responses import Response

from cantata.api.context import ApiContext, Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import ERRORS, either, events, sound
from cantata.api.schemas import SpeechBody, SpeechVerification
from cantata.api.speech.framing import EVENT_TYPES, SSE_MEDIA_TYPE, choose_framing
from cantata.api.speech.response import SpeechResponse
from cantata.api.speech.validated_request import ValidatedRequest, validate_request
from cantata.api.speech.verification import choose_verifier, count_words, verify_speech
from cantata.api.speech.voice_choice import choose_model
from cantata.api.speech.whole import WholeSpeech
from cantata.audio.formats import FORMATS
from cantata.contract.service import Samples

router = APIRouter(prefix="/v1/audio", tags=["speech"], route_class=CheckedRoute, responses=ERRORS)


@router.post(
    "/speech",
    response_class=Response,
    responses=either(sound(FORMATS.values()), events(SSE_MEDIA_TYPE, EVENT_TYPES)),
)
async def speech(body: SpeechBody, context: Context) -> Response:
    """Speak one text. See docs/protocol.md."""
    body.check_stream()
    model = await choose_model(context, body.model, body.voice, body.ref_audio)
    order = await validate_request(context, model, body)
    if body.verify:
        choose_verifier(context)  # before anything is spoken
    if body.sign:
        context.check_signable(order.output)
    if (body.verify and body.stream_format == "audio") or body.sign:
        return WholeSpeech(context, order, body.verify)
    framing = choose_framing(body, order.output.audio_format)
    verify = partial(_verify, context, order) if body.verify else None
    return SpeechResponse(order, framing, context.metrics, context.settings.stall_timeout_s, verify)


async def _verify(
    context: ApiContext, order: ValidatedRequest, samples: Sequence[Samples]
) -> SpeechVerification:
    found = await verify_speech(context, order.request.text, samples, order.model.sample_rate)
    count_words(context, order.model.name, found)
    return found
