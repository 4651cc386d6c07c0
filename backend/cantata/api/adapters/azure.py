"""Azure OpenAI's paths: the model is a deployment named in the path.

Operators name Azure's deployments freely. A name that is not a served model's means the default.
`/openai/v1/...` is handled with the paths (`request_line`).
"""

from __future__ import annotations

from typing import TypeVar

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from cantata.api.chat.body import ChatBody
from cantata.api.context import ApiContext, Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.images.body import GenerationBody
from cantata.api.openapi import ERRORS
from cantata.api.routes import chat, images, speech
from cantata.api.schemas import SpeechBody

_PREFIX = "/openai/deployments/{deployment}"

router = APIRouter(
    prefix=_PREFIX,
    tags=["azure"],
    route_class=CheckedRoute,
    responses=ERRORS,
    include_in_schema=False,
)

B = TypeVar("B", bound=BaseModel)


@router.post("/audio/speech")
async def speak(deployment: str, body: SpeechBody, context: Context) -> Response:
    """Azure's name for POST /v1/audio/speech."""
    return await speech.speech(_of_deployment(body, deployment, context), context)


@router.post("/chat/completions")
async def answer(deployment: str, body: ChatBody, context: Context) -> Response:
    """Azure's name for POST /v1/chat/completions."""
    return await chat.chat_completions(_of_deployment(body, deployment, context), context)


@router.post("/images/generations")
async def draw(deployment: str, body: GenerationBody, context: Context) -> Response:
    """Azure's name for POST /v1/images/generations."""
    return await images.generate_images(_of_deployment(body, deployment, context), context)


@router.post("/images/edits")
async def edit(deployment: str, request: Request, context: Context) -> Response:
    """Azure's name for POST /v1/images/edits."""
    return await images.edit(
        request, context, lambda body: _of_deployment(body, deployment, context)
    )


def _of_deployment(body: B, deployment: str, context: ApiContext) -> B:
    service = context.service
    known = (service.models, service.chat_models, service.image_models)
    name = deployment if any(deployment in models for models in known) else None
    return body.model_copy(update={"model": name})
