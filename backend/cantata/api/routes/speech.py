"""POST /v1/audio/speech: one text in, sound out while it is made."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from cantata.api.context import Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import ERRORS, either, events, sound
from cantata.api.schemas import SpeechBody
from cantata.api.speech.framing import EVENT_TYPES, SSE_MEDIA_TYPE, choose_framing
from cantata.api.speech.response import SpeechResponse
from cantata.api.speech.validated_request import validate_request
from cantata.api.speech.voice_choice import choose_model
from cantata.audio.formats import FORMATS

router = APIRouter(prefix="/v1/audio", tags=["speech"], route_class=CheckedRoute, responses=ERRORS)


@router.post(
    "/speech",
    response_class=Response,
    responses=either(sound(FORMATS.values()), events(SSE_MEDIA_TYPE, EVENT_TYPES)),
)
async def speech(body: SpeechBody, context: Context) -> Response:
    """Speak one text. See docs/protocol.md."""
    body.check_timestamps()
    model = await choose_model(context, body.model, body.voice)
    order = await validate_request(context, model, body)
    framing = choose_framing(body, order.output.audio_format)
    return SpeechResponse(order, framing, context.metrics, context.settings.stall_timeout_s)
