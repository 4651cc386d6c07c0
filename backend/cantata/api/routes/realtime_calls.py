"""/v1/realtime/calls: a spoken conversation over WebRTC, as browsers hold it."""

from __future__ import annotations

import json
from collections import ChainMap
from importlib.util import find_spec
from typing import Any

from fastapi import APIRouter
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from cantata.api.access.api_keys import is_loopback
from cantata.api.access.security import get_client_secret, keep_place
from cantata.api.context import Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import ERRORS
from cantata.api.realtime.model_choice import choose_ready_model
from cantata.contract.data.errors import InvalidRequest, NotInstalled

router = APIRouter(
    prefix="/v1/realtime/calls", tags=["realtime"], route_class=CheckedRoute, responses=ERRORS
)

_SDP, _FORM = "application/sdp", "multipart/form-data"
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            _SDP: {"schema": {"type": "string"}},
            _FORM: {
                "schema": {
                    "type": "object",
                    "properties": {"sdp": {"type": "string"}, "session": {"type": "string"}},
                    "required": ["sdp"],
                }
            },
        },
    }
}
_ANSWER: dict[int | str, dict[str, Any]] = {
    201: {
        "description": "The answer.",
        "content": {_SDP: {"schema": {"type": "string"}}},
        "headers": {"location": {"schema": {"type": "string"}}},
    }
}


@router.post("", status_code=201, response_class=Response, responses=_ANSWER, openapi_extra=_BODY)
async def call(request: Request, context: Context, model: str | None = None) -> Response:
    """Open a call: an SDP offer in, the answer out. See docs/realtime.md."""
    if find_spec("aiortc") is None:
        raise NotInstalled("calls over WebRTC need aiortc: pip install 'cantata[webrtc]'")
    sdp, session = await _read(request)
    context.calls.check_room(context.settings.realtime.calls.max_calls)
    secret = get_client_secret(request.scope)
    settings = [one for one in (secret and secret.session, session) if one]
    choice = await choose_ready_model(context, model, None, ChainMap(*reversed(settings)))
    # The package is optional, and takes a moment to import.
    from cantata.api.realtime.calls.call import RealtimeCall
    from cantata.api.realtime.calls.ice import MediaAddresses

    opened = RealtimeCall(context, choice)
    here = request.client is not None and is_loopback(request.client.host)
    where = MediaAddresses(context.settings.realtime.calls, loopback=here)
    answer = await opened.answer(sdp, where, settings)
    context.calls.start(opened, keep_place(request.scope))
    location = f"{request.url.path.rstrip('/')}/{opened.id}"
    return Response(answer, 201, {"location": location}, media_type=_SDP)


@router.post("/{call_id}/hangup", status_code=200, response_class=Response)
async def hang_up(call_id: str, context: Context) -> Response:
    """End a call."""
    context.calls.find(call_id).abort()
    return Response(status_code=200)


async def _read(request: Request) -> tuple[str, dict[str, Any]]:
    """The offer, and the session's settings. Raises InvalidRequest: there is no offer, the settings
    are no JSON object, or a text is not UTF-8."""
    sent_as = request.headers.get("content-type", "").lower()
    if sent_as.startswith(_SDP):
        return _decode(await request.body(), "sdp"), {}
    if not sent_as.startswith(_FORM):
        raise InvalidRequest(
            f"the body must be an SDP offer, sent as {_SDP}, or a form with sdp and session, sent "
            f"as {_FORM}"
        )
    async with request.form(max_files=2, max_fields=8) as form:
        sdp, session = [await _read_text(form.get(name), name) for name in ("sdp", "session")]
    if not sdp:
        raise InvalidRequest("sdp is required", "sdp")
    try:
        settings = json.loads(session or "{}")
    except ValueError as error:
        raise InvalidRequest(f"session is not valid JSON: {error}", "session") from None
    if not isinstance(settings, dict):
        raise InvalidRequest("session must be a JSON object", "session")
    return sdp, settings


async def _read_text(part: UploadFile | str | None, name: str) -> str:
    """A part of a form; some clients send text as a file."""
    if isinstance(part, UploadFile):
        return _decode(await part.read(), name)
    return part or ""


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{name} is not UTF-8: {error}", name) from None
