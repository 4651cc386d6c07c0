"""/v1/audio/speech: sound out while it is made, of one text (POST), of one that is being written
(WebSocket `/stream`), or of many, a line with a file for each when it is ready (POST `/batch`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fastapi import APIRouter, WebSocket
from starlette.responses import Response

from cantata.api.context import ApiContext, Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import (
    ERRORS,
    describe_bytes,
    describe_events,
    describe_sound,
    merge_responses,
)
from cantata.api.schemas import BatchBody, SpeechBody, SpeechVerification
from cantata.api.sessions.native import NativeConnection
from cantata.api.speech.batch_response import MEDIA_TYPE, BatchResponse
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
    responses=merge_responses(
        describe_sound(FORMATS.values()), describe_events(SSE_MEDIA_TYPE, EVENT_TYPES)
    ),
)
async def speech(body: SpeechBody, context: Context) -> Response:
    """Speak one text. See docs/protocol.md."""
    body.check_stream()
    model = await choose_model(context, body.model, body.voice, body.ref_audio)
    validated = await validate_request(context, model, body)
    if body.verify:
        choose_verifier(context)  # before anything is spoken
    if body.sign:
        context.check_signable(validated.output)
    if (body.verify and body.stream_format == "audio") or body.sign or context.spare:
        return WholeSpeech(context, validated, body.verify)
    framing = choose_framing(body, validated.output.audio_format)
    verify = partial(_verify, context, validated) if body.verify else None
    return SpeechResponse(
        validated, framing, context.metrics, context.settings.stall_timeout_s, verify
    )


@router.websocket("/speech/stream")
async def speech_stream(socket: WebSocket, context: Context) -> None:
    """Serve one session; see docs/protocol.md."""
    await socket.accept()
    await NativeConnection(socket, context).run()


@router.post("/speech/batch", response_class=Response, responses=describe_bytes(MEDIA_TYPE))
async def speech_batch(body: BatchBody, context: Context) -> Response:
    """Speak many texts, after all live streams. See docs/protocol.md."""
    context.lifecycle.check()
    return BatchResponse(context, body.requests)


async def _verify(
    context: ApiContext, validated: ValidatedRequest, samples: Sequence[Samples]
) -> SpeechVerification:
    found = await verify_speech(
        context, validated.request.text, samples, validated.model.sample_rate
    )
    count_words(context, validated.model.name, found)
    return found
