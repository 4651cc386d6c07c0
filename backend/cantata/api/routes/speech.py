"""/v1/audio/speech: sound out while it is made, of one text (POST), of one that is being written
(WebSocket `/stream`), or of many, a line with a file for each when it is ready (POST `/batch`)."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Iterator, Sequence
from functools import partial

from fastapi import APIRouter, WebSocket
from starlette.responses import Response

from cantata.api.context import ApiContext, Context
from cantata.api.errors import describe
from cantata.api.http.bodies import CheckedRoute
from cantata.api.http.streamed_response import Body, ClientStalled, StreamedResponse
from cantata.api.openapi import (
    ERRORS,
    describe_bytes,
    describe_events,
    describe_sound,
    merge_responses,
)
from cantata.api.schemas import (
    BatchBody,
    BatchFailure,
    BatchItem,
    BatchResult,
    ErrorDetail,
    SpeechBody,
    SpeechVerification,
)
from cantata.api.sessions.native import NativeConnection
from cantata.api.speech.framing import EVENT_TYPES, SSE_MEDIA_TYPE, build_usage, choose_framing
from cantata.api.speech.response import SpeechResponse
from cantata.api.speech.validated_request import ValidatedRequest, validate_request
from cantata.api.speech.verification import choose_verifier, count_words, verify_speech
from cantata.api.speech.voice_choice import choose_model
from cantata.api.speech.whole import SpokenFile, WholeSpeech, speak_file
from cantata.audio.formats import FORMATS
from cantata.contract.data.errors import CantataError
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


async def _verify(
    context: ApiContext, validated: ValidatedRequest, samples: Sequence[Samples]
) -> SpeechVerification:
    found = await verify_speech(
        context, validated.request.text, samples, validated.model.sample_rate
    )
    count_words(context, validated.model.name, found)
    return found


logger = logging.getLogger(__name__)

_MEDIA_TYPE = "application/x-ndjson"
_AT_A_TIME = 4
"""Items of one batch that are spoken at the same time; this bounds its memory."""


@router.post("/speech/batch", response_class=Response, responses=describe_bytes(_MEDIA_TYPE))
async def speech_batch(body: BatchBody, context: Context) -> Response:
    """Speak many texts, after all live streams. See docs/protocol.md."""
    context.lifecycle.check()
    return BatchResponse(context, body.requests)


class BatchResponse(StreamedResponse):
    """A line for every item, in order of completion."""

    def __init__(self, context: ApiContext, items: list[BatchItem]) -> None:
        super().__init__(_MEDIA_TYPE, {}, context.settings.stall_timeout_s)
        self._context = context
        self._items = items
        self._writing = asyncio.Lock()

    async def stream(self, request_id: str, body: Body) -> None:
        """Write all lines; an item's error is its line, and the other items continue."""
        items = iter(self._items)
        await body.write(b"")
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(min(_AT_A_TIME, len(self._items))):
                    group.create_task(self._work(items, body), name=f"{request_id}:{number}")
        except* ClientStalled:
            logger.info("the client stopped reading; its utterances are aborted")
        else:
            await body.end()

    async def _work(self, items: Iterator[BatchItem], body: Body) -> None:
        for item in items:
            outcome = await self._build_outcome(item)
            # A file takes four times its size while it is written as text, so one at a time.
            async with self._writing:
                line = await asyncio.to_thread(_encode_line, item.custom_id, outcome)
                await body.write_in_parts(line)

    async def _build_outcome(self, item: BatchItem) -> SpokenFile | ErrorDetail:
        try:
            model = await choose_model(self._context, item.model, item.voice, item.ref_audio)
            validated = await validate_request(self._context, model, item)
            return await speak_file(self._context, validated, item.verify, batch=True)
        except CantataError as error:
            return describe(error).detail


def _encode_line(custom_id: str, outcome: SpokenFile | ErrorDetail) -> bytes:
    line: BatchResult | BatchFailure
    if isinstance(outcome, ErrorDetail):
        line = BatchFailure(custom_id=custom_id, error=outcome)
    else:
        validated = outcome.validated
        line = BatchResult(
            custom_id=custom_id,
            audio=base64.b64encode(outcome.data).decode("ascii"),
            content_type=validated.output.audio_format.media_type,
            sample_rate=validated.output.sample_rate,
            channels=validated.output.channels,
            duration_s=outcome.duration_s,
            usage=build_usage(validated.request.text, outcome.duration_s),
            ignored=list(validated.ignored),
            verification=outcome.verification,
        )
        return line.model_dump_json(exclude_none=True).encode() + b"\n"
    return line.model_dump_json().encode() + b"\n"
