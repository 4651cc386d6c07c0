"""WebSocket /v1/realtime: a spoken conversation, as OpenAI's clients hold it."""

from __future__ import annotations

from fastapi import APIRouter, Response, WebSocket

from cantata.api.context import ApiContext, Context
from cantata.api.errors import describe, respond
from cantata.api.realtime.connection import RealtimeConnection
from cantata.contract.data.errors import CantataError
from cantata.contract.service import ServedModel

router = APIRouter(prefix="/v1")

_OPENAI_MODELS = "gpt-"
"""How the names begin that OpenAI's clients send by default; they mean the default model."""


@router.websocket("/realtime")
async def realtime(socket: WebSocket, context: Context) -> None:
    """One session; see docs/realtime.md."""
    try:
        await context.cascade.prepare()
        model = _model(context, socket.query_params.get("model"))
    except CantataError as error:
        await socket.send_denial_response(respond(socket, describe(error)))
        return
    with context.metrics.conversations.sessions.track_inprogress():
        await socket.accept()
        await RealtimeConnection(socket, context, model).run()


@router.get("/realtime", include_in_schema=False, status_code=204)
async def can_talk(context: Context, model: str | None = None) -> Response:
    """Answers as a handshake with the same query would, for browsers: their WebSockets do not say
    why they are refused. 204: a session would be opened."""
    await context.cascade.prepare()
    _model(context, model).check_room()
    return Response(status_code=204)


def _model(context: ApiContext, name: str | None) -> ServedModel:
    return context.model(None if name is None or name.startswith(_OPENAI_MODELS) else name)
