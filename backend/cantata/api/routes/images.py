"""POST /v1/images/generations and /v1/images/edits: a prompt in, pictures out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from cantata.api.context import ApiContext, Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.images.answers import COMPLETED, PARTIAL, PROGRESS, THOUGHT, ImagesAnswer, Kind
from cantata.api.images.body import EditBody, GenerationBody
from cantata.api.images.edits import JsonEditBody, read_edit
from cantata.api.images.response import ImagesResponse, StreamedImages, WholeImages
from cantata.api.images.validation import ValidatedImage, check_image_body
from cantata.api.openapi import ERRORS, Responses, describe_events
from cantata.api.speech.framing import SSE_MEDIA_TYPE

router = APIRouter(prefix="/v1/images", tags=["images"], route_class=CheckedRoute, responses=ERRORS)


def _describe_answers(kind: Kind) -> Responses:
    responses = describe_events(
        SSE_MEDIA_TYPE, [THOUGHT[kind], PARTIAL[kind], COMPLETED[kind], PROGRESS[kind]]
    )
    return {200: {"model": ImagesAnswer, **responses[200]}}


@router.post(
    "/generations", response_class=Response, responses=_describe_answers("image_generation")
)
async def generate_images(body: GenerationBody, context: Context) -> Response:
    """Draw pictures from a prompt. See docs/images.md."""
    return _build_response(context, check_image_body(context, body))


def _edit_form() -> dict[str, Any]:
    """The OpenAPI schema of the form: its fields, and files."""
    schema = EditBody.model_json_schema()
    files = {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1}
    schema["properties"] = {"image": files, **schema["properties"]}
    schema["required"] = ["image", *schema["required"]]
    content = {
        "multipart/form-data": {"schema": schema},
        "application/json": {"schema": JsonEditBody.model_json_schema()},
    }
    return {"requestBody": {"required": True, "content": content}}


@router.post(
    "/edits",
    response_class=Response,
    responses=_describe_answers("image_edit"),
    openapi_extra=_edit_form(),
)
async def edit_images(request: Request, context: Context) -> Response:
    """Draw pictures from a prompt and other pictures. See docs/images.md."""
    return await edit(request, context, lambda body: body)


async def edit(
    request: Request, context: ApiContext, adapt: Callable[[EditBody], EditBody]
) -> ImagesResponse:
    """Read an edit, sent as a form or as JSON, and draw it. `adapt`: changes the options that were
    sent."""
    context.lifecycle.check()
    body, sent = await read_edit(request, context.media)
    return _build_response(context, check_image_body(context, adapt(body), sent))


def _build_response(context: ApiContext, validated: ValidatedImage) -> ImagesResponse:
    return (
        StreamedImages(context, validated)
        if validated.options.stream
        else WholeImages(context, validated)
    )
