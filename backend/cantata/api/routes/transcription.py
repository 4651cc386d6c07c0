"""POST /v1/audio/transcriptions and /v1/audio/translations: a recording in, its words out."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from cantata.api.context import ApiContext, Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import ERRORS, describe_bytes, describe_events, merge_responses
from cantata.api.speech.framing import SSE_MEDIA_TYPE
from cantata.api.transcription.answers import STREAM_EVENTS
from cantata.api.transcription.body import (
    InputRecording,
    JsonTranscriptionBody,
    TranscriptionBody,
    close_files,
    read_form,
    read_json,
)
from cantata.api.transcription.response import TranscriptionResponse, ValidatedTranscription
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.languages import has_language
from cantata.contract.transcription_service import TranscriptionModel

router = APIRouter(
    prefix="/v1/audio", tags=["transcription"], route_class=CheckedRoute, responses=ERRORS
)

_FORM = "multipart/form-data"
_JSON = "application/json"
_RESPONSES = merge_responses(
    describe_bytes("application/json", "text/plain", "application/x-subrip", "text/vtt"),
    describe_events(SSE_MEDIA_TYPE, STREAM_EVENTS),
)


def _build_body_schemas() -> dict[str, Any]:
    """The form, and the JSON, for the OpenAPI document."""
    schema = TranscriptionBody.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    fields = schema["properties"]
    fields["file"] = {"type": "string", "format": "binary"}
    fields["chunking_strategy"] = {"type": "string"}
    schema["required"] = ["file"]
    as_json = JsonTranscriptionBody.model_json_schema(ref_template="#/components/schemas/{model}")
    as_json.pop("$defs", None)
    as_json["properties"]["chunking_strategy"] = {}
    as_json["properties"]["input_audio"] = InputRecording.model_json_schema()
    content = {_FORM: {"schema": schema}, _JSON: {"schema": as_json}}
    return {"requestBody": {"required": True, "content": content}}


@router.post(
    "/transcriptions",
    response_class=Response,
    responses=_RESPONSES,
    openapi_extra=_build_body_schemas(),
)
async def transcribe(request: Request, context: Context) -> Response:
    """Write down what is said in a recording. See docs/protocol.md."""
    return await _respond(request, context, translate=False)


@router.post(
    "/translations",
    response_class=Response,
    responses=_RESPONSES,
    openapi_extra=_build_body_schemas(),
)
async def translate(request: Request, context: Context) -> Response:
    """Write in English what is said in another language. See docs/protocol.md."""
    return await _respond(request, context, translate=True)


async def _respond(request: Request, context: ApiContext, *, translate: bool) -> Response:
    context.lifecycle.check()
    sent_as = request.headers.get("content-type", "").lower()
    if not sent_as.startswith((_FORM, _JSON)):
        raise InvalidRequest(f"the body must be a form, sent as {_FORM}, or JSON, sent as {_JSON}")
    await context.cascade.prepare()
    is_form = sent_as.startswith(_FORM)
    form = await request.form(max_files=8, max_fields=100) if is_form else FormData()
    with ExitStack() as stack:
        stack.callback(close_files, form)
        body, sent = read_form(form) if is_form else await read_json(request, context.media)
        model = context.get_transcription_model(body.model)
        if translate and not model.translates:
            raise InvalidRequest(
                f"model {model.name!r} translates nothing; serve a multilingual one", "model"
            )
        _check_languages(model, body)
        stack.pop_all()  # the response closes them
    validated = ValidatedTranscription(model, body, sent, form, translate)
    return TranscriptionResponse(context, validated)


def _check_languages(model: TranscriptionModel, body: TranscriptionBody) -> None:
    """Reject a language before the recording is read: one without speech would never be
    recognized."""
    named = [("language", body.language)] if body.language is not None else []
    for param, language in (*named, *(("languages", one) for one in body.languages)):
        if model.languages and not has_language(model.languages, language):
            raise InvalidRequest(
                f"{param} {language!r}: valid: {', '.join(model.languages)}", param
            )
