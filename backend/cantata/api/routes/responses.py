"""/v1/responses: OpenAI's Responses API, for models that answer messages."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from cantata.api.context import Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import ERRORS, describe_bytes
from cantata.api.responses.body import ResponsesBody
from cantata.api.responses.objects import DeletedResponse, ResponseObject
from cantata.api.responses.response import (
    StreamedModelResponse,
    WholeModelResponse,
    validate_response,
)
from cantata.api.speech.framing import SSE_MEDIA_TYPE

router = APIRouter(
    prefix="/v1/responses", tags=["responses"], route_class=CheckedRoute, responses=ERRORS
)


@router.post(
    "",
    response_class=Response,
    responses={200: {"model": ResponseObject, **describe_bytes(SSE_MEDIA_TYPE)[200]}},
)
async def create_response(body: ResponsesBody, context: Context) -> Response:
    """Continue a conversation. See docs/protocol.md."""
    validated = await validate_response(context, body)
    kind = StreamedModelResponse if body.stream else WholeModelResponse
    return kind(context, validated)


@router.get("/{response_id}")
async def get_response(response_id: str, context: Context) -> ResponseObject:
    """A response that is kept."""
    return context.responses.find(response_id).response


@router.delete("/{response_id}")
async def delete_response(response_id: str, context: Context) -> DeletedResponse:
    """Forgets a response."""
    context.responses.delete(response_id)
    return DeletedResponse(id=response_id)
