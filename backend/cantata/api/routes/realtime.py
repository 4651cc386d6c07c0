"""WebSocket /v1/realtime: a spoken conversation, as OpenAI's clients hold it."""

from __future__ import annotations

from fastapi import APIRouter, Response, WebSocket

from cantata.api.context import ApiContext, Context
from cantata.api.errors import describe, respond
from cantata.api.realtime.beta import asks_for_beta
from cantata.api.realtime.connection import RealtimeConnection
from cantata.api.realtime.opening import open_session
from cantata.contract.data.errors import CantataError

router = APIRouter(prefix="/v1")


@router.websocket("/realtime")
async def realtime(socket: WebSocket, context: Context) -> None:
    """Serve one session; see docs/realtime.md."""
    try:
        intent = socket.query_params.get("intent")
        choice = await open_session(context, _get_model(socket, context), intent)
    except CantataError as error:
        await socket.send_denial_response(respond(socket, describe(error)))
        return
    with context.metrics.conversations.sessions.track_inprogress():
        await socket.accept()
        beta = asks_for_beta(socket.headers)
        await RealtimeConnection(socket, context, choice, beta=beta).run()


@router.get("/realtime", include_in_schema=False, status_code=204)
async def can_talk(
    context: Context, model: str | None = None, intent: str | None = None
) -> Response:
    """Answers as a handshake with the same query would, for browsers: their WebSockets do not say
    why they are refused. 204: a session would be opened."""
    await open_session(context, model, intent)
    return Response(status_code=204)


def _get_model(socket: WebSocket, context: ApiContext) -> str | None:
    """The model that the address names. Operators name Azure's deployments freely: one that is not
    a served model's name means the default."""
    asked, deployment = (socket.query_params.get(name) for name in ("model", "deployment"))
    service = context.service
    if asked is None and (deployment in service.models or deployment in service.chat_models):
        return deployment
    return asked
