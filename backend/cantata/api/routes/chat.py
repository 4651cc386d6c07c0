"""POST /v1/chat/completions: messages in, an answer out, in text, spoken or drawn."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from cantata.api.chat.answers import ChatCompletion
from cantata.api.chat.body import ChatBody
from cantata.api.chat.picture_validation import check_picture_body, wants_picture
from cantata.api.chat.pictures import StreamedPicture, WholePicture
from cantata.api.chat.response import StreamedAnswer, WholeAnswer
from cantata.api.chat.validation import check_chat_body
from cantata.api.context import Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import ERRORS, describe_bytes
from cantata.api.speech.framing import SSE_MEDIA_TYPE

router = APIRouter(prefix="/v1/chat", tags=["chat"], route_class=CheckedRoute, responses=ERRORS)


@router.post(
    "/completions",
    response_class=Response,
    responses={200: {"model": ChatCompletion, **describe_bytes(SSE_MEDIA_TYPE)[200]}},
)
async def chat_completions(body: ChatBody, context: Context) -> Response:
    """Continue a conversation. See docs/protocol.md."""
    if wants_picture(context, body):
        picture = check_picture_body(context, body)
        return StreamedPicture(context, picture) if body.stream else WholePicture(context, picture)
    validated = await check_chat_body(context, body)
    if body.stream:
        return StreamedAnswer(context, validated)
    return WholeAnswer(context, validated)
