"""WebSocket /v1/realtime: a spoken conversation, as OpenAI's clients hold it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response, WebSocket
from starlette.requests import HTTPConnection

from cantata.api.access.security import get_client_secret, get_key_label, keep_place
from cantata.api.context import ApiContext, Context
from cantata.api.errors import describe, respond
from cantata.api.realtime.beta import asks_for_beta
from cantata.api.realtime.calls.sideband import Sideband, check_room
from cantata.api.realtime.connection import RealtimeConnection
from cantata.api.realtime.model_choice import choose_ready_model
from cantata.api.realtime.resuming.query import ResumeQuery
from cantata.api.realtime.resuming.resumable_sessions import ResumableSession, describe_resuming
from cantata.api.sessions.socket import MessageSocket, parse_query
from cantata.contract.data.errors import CantataError

router = APIRouter(prefix="/v1")


@router.websocket("/realtime")
async def realtime(socket: WebSocket, context: Context) -> None:
    """Serve one session; see docs/realtime.md."""
    try:
        query = parse_query(ResumeQuery, socket.query_params)
        call_id = socket.query_params.get("call_id")
        if call_id is not None:
            query.check_unused()
            await _join_call(socket, context, call_id)
        elif (place := query.place) is not None:
            await _resume(socket, _find(socket, context, place.token), place.after)
        elif query.resumable:
            await _open_resumable(socket, context)
        else:
            connection = await _make_connection(socket, context, socket)
            with context.metrics.conversations.sessions.track_inprogress():
                await socket.accept()
                await connection.run()
    except CantataError as error:
        await socket.send_denial_response(respond(socket, describe(error)))


async def _make_connection(
    socket: WebSocket,
    context: ApiContext,
    carrier: MessageSocket,
    session: ResumableSession | None = None,
) -> RealtimeConnection:
    """A session as a handshake asks for it, which has not begun.

    Args:
        session: it can be resumed.

    Raises:
        CantataError: it is refused.
    """
    secret = get_client_secret(socket.scope)
    settings = {} if secret is None else secret.session
    intent = socket.query_params.get("intent")
    choice = await choose_ready_model(context, _get_model(socket, context), intent, settings)
    limits = context.settings.realtime.resuming
    connection = RealtimeConnection(
        carrier,
        context,
        choice,
        beta=asks_for_beta(socket.headers),
        resume=None if session is None else describe_resuming(session, limits),
    )
    if settings:
        await connection.configure(settings)
    return connection


async def _open_resumable(socket: WebSocket, context: ApiContext) -> None:
    """Serve the first connection of a session that outlives it; errors as of `_make_connection`."""
    limits = context.settings.realtime.resuming
    context.resumable.check_room(limits.max_sessions)
    owner = get_key_label(socket.scope)
    session = context.resumable.make(limits, context.settings.stall_timeout_s, owner)
    connection = await _make_connection(socket, context, session.socket, session)
    context.resumable.check_room(limits.max_sessions)  # others may have come meanwhile

    async def run() -> None:
        with context.drain.subscribed(session.socket.begin_drain):
            await connection.run()

    link = session.socket.connect()
    held = keep_place(socket.scope)
    held.enter_context(context.metrics.conversations.sessions.track_inprogress())
    context.resumable.start(session, run, held)
    try:
        await socket.accept()
        await session.socket.carry(socket, link)
    finally:
        session.socket.drop(link)


async def _resume(socket: WebSocket, session: ResumableSession, after: str) -> None:
    """Serve another connection of a session. Raises EventsLost: it cannot go on where the client
    is."""
    link = session.socket.connect(after)
    try:
        await socket.accept()
        await session.socket.carry(socket, link)
    finally:
        session.socket.drop(link)


def _find(connection: HTTPConnection, context: ApiContext, token: str) -> ResumableSession:
    """The session of a token; errors as of `ResumableSessions.find`."""
    return context.resumable.find(token, get_key_label(connection.scope))


async def _join_call(socket: WebSocket, context: ApiContext, call_id: str) -> None:
    """Serve a program that takes part in a call.

    Raises:
        CallNotFound: none of this id is open.
        Overloaded: enough take part in it.
    """
    call = context.calls.find(call_id)
    check_room(call)
    await socket.accept()
    await Sideband(socket, context, call).run()


@router.get("/realtime", include_in_schema=False, status_code=204)
async def can_talk(
    request: Request, context: Context, model: str | None = None, intent: str | None = None
) -> Response:
    """Answers as a handshake with the same query would, for browsers: their WebSockets do not say
    why they are refused. 204: a session would be opened, or resumed."""
    query = parse_query(ResumeQuery, request.query_params)
    if (place := query.place) is not None:
        _find(request, context, place.token).socket.check(place.after)
        return Response(status_code=204)
    secret = get_client_secret(request.scope)
    await choose_ready_model(context, model, intent, {} if secret is None else secret.session)
    return Response(status_code=204)


def _get_model(socket: WebSocket, context: ApiContext) -> str | None:
    """The model that the address names. Operators name Azure's deployments freely: one that is not
    a served model's name means the default."""
    asked, deployment = (socket.query_params.get(name) for name in ("model", "deployment"))
    service = context.service
    if asked is None and (deployment in service.models or deployment in service.chat_models):
        return deployment
    return asked
