"""Every error as OpenAI's body: {"error": {"message", "type", "param", "code"}}.

Clients read `.code` and `.type` from the top of the body, so nothing is wrapped in `detail`.
"""

from __future__ import annotations

import json
import logging
import math
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from cantata.api.http.request_id import REQUEST_ID_HEADER, get_request_id
from cantata.api.schemas import ErrorBody, ErrorDetail
from cantata.api.server.lifecycle import NotReady
from cantata.contract.data.errors import (
    CallNotFound,
    CantataError,
    EventsLost,
    FileInUse,
    Forbidden,
    InvalidRequest,
    JobEnded,
    JobNotFound,
    JobsFull,
    JobsLocked,
    LexiconExists,
    LexiconNotFound,
    LexiconsFull,
    ModelNotFound,
    NotInstalled,
    NotStored,
    Overloaded,
    PayloadTooLarge,
    Quarantined,
    ResponseNotFound,
    SessionNotFound,
    StageDied,
    StartFailed,
    Unauthorized,
    UploadNotFound,
    VoiceExists,
    VoicesFull,
)
from cantata.telemetry.request_record import note_error
from cantata.utils.logs import log_for_request

logger = logging.getLogger(__name__)

INVALID_REQUEST = "invalid_request_error"
RATE_LIMIT = "rate_limit_error"
SERVER_ERROR = "server_error"

_MAX_SHOWN_CHARACTERS = 80
_CODE_OF_STATUS = {
    400: "invalid_value",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "unsupported_media_type",
}


@dataclass(frozen=True, slots=True)
class HttpError:
    status: int
    detail: ErrorDetail
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def retry_after_s(self) -> int | None:
        """When the client may retry; None if a retry would not help."""
        value = self.headers.get("retry-after")
        return None if value is None else int(value)


ErrorShape = Callable[[HttpError, str], dict[str, Any]]
"""An error and the request's id as the body of another protocol."""


def describe(error: BaseException) -> HttpError:
    """An error as clients see it, of which the request's record keeps the code. Unexpected errors
    show no details."""
    described = _describe(error)
    note_error(described.detail.code)
    return described


def _describe(error: BaseException) -> HttpError:
    match error:
        case ModelNotFound():
            return HttpError(404, build_detail(error, INVALID_REQUEST, error.param or "model"))
        case UploadNotFound() | LexiconNotFound() | ResponseNotFound() | CallNotFound():
            return HttpError(404, build_detail(error, INVALID_REQUEST, error.param))
        case JobNotFound() | SessionNotFound():
            return HttpError(404, build_detail(error, INVALID_REQUEST, error.param))
        case JobEnded() | JobsFull() | FileInUse() | EventsLost():
            return HttpError(409, build_detail(error, INVALID_REQUEST, error.param))
        case VoiceExists() | VoicesFull() | LexiconExists() | LexiconsFull():
            return HttpError(409, build_detail(error, INVALID_REQUEST, error.param))
        case Quarantined():
            return HttpError(422, build_detail(error, INVALID_REQUEST, error.param))
        case PayloadTooLarge():
            return HttpError(413, build_detail(error, INVALID_REQUEST, error.param))
        case Unauthorized():
            ask = {"www-authenticate": 'Bearer realm="cantata"'}
            return HttpError(401, build_detail(error, INVALID_REQUEST), ask)
        case Forbidden():
            return HttpError(403, build_detail(error, INVALID_REQUEST))
        case InvalidRequest():
            return HttpError(400, build_detail(error, INVALID_REQUEST, error.param))
        case Overloaded():
            wait = {"retry-after": str(max(1, math.ceil(error.retry_after_s)))}
            return HttpError(429, build_detail(error, RATE_LIMIT), wait)
        case StartFailed():
            return HttpError(503, build_detail(error, SERVER_ERROR))
        case JobsLocked():
            return HttpError(503, build_detail(error, SERVER_ERROR), {"retry-after": "10"})
        case StageDied() | NotReady():
            return HttpError(503, build_detail(error, SERVER_ERROR), {"retry-after": "1"})
        case NotInstalled():
            return HttpError(501, build_detail(error, SERVER_ERROR))
        case NotStored():
            return HttpError(507, build_detail(error, SERVER_ERROR))
        case CantataError():
            return HttpError(500, build_detail(error, SERVER_ERROR))
        case _:
            message = "an unexpected error occurred; the server's log has the details"
            detail = ErrorDetail(message=message, type=SERVER_ERROR, code="internal_error")
            return HttpError(500, detail)


def build_detail(error: CantataError, kind: str, param: str | None = None) -> ErrorDetail:
    """An error of the tree in OpenAI's format."""
    return ErrorDetail(message=error.message, type=kind, param=param, code=error.code)


def explain_validation(problems: Sequence[Any], sent: Any = None) -> InvalidRequest:
    """The first of Pydantic's problems as one sentence, and the field at fault. `sent`: the
    request's body, if it has one."""
    problem = problems[0]
    if problem["type"] == "json_invalid":
        reason = problem.get("ctx", {}).get("error", "")
        return InvalidRequest(f"the body is not valid JSON: {reason}")
    missing = problem["type"] in ("missing", "union_tag_not_found")
    if isinstance(sent, dict) and problem["loc"][0] == "body":
        param = format_location(problem["loc"][1:], sent, missing=missing)
    else:
        param = get_field(problem["loc"])
    if param is None:
        return InvalidRequest("the body must be a JSON object, sent as application/json")
    if problem["type"] == "union_tag_not_found":
        param += f".{_get_tag(problem)}"
    if missing:
        return InvalidRequest(f"{param} is required", param=param)
    if problem["type"] == "union_tag_invalid":
        param += f".{_get_tag(problem)}"
        tag, valid = problem["ctx"]["tag"], problem["ctx"]["expected_tags"]
        return InvalidRequest(f"{param} is {_shorten_value(tag)}; valid: {valid}", param=param)
    return InvalidRequest(
        f"{param}: {problem['msg']} (got {_shorten_value(problem.get('input'))})", param
    )


class _JsonRepr(reprlib.Repr):
    """A part of a long or deeply nested value; what JSON has words for, in these."""

    def repr1(self, x: Any, level: int) -> str:
        return json.dumps(x) if x is None or isinstance(x, bool) else super().repr1(x, level)


def _shorten_value(sent: Any) -> str:
    """A client's value, as far as it fits into a message."""
    whole = isinstance(sent, str)
    shown = repr(sent[:_MAX_SHOWN_CHARACTERS]) if whole else _JsonRepr().repr(sent)
    if len(shown) > _MAX_SHOWN_CHARACTERS:
        shown = shown[:_MAX_SHOWN_CHARACTERS] + "..."
    return shown


def _get_tag(problem: Any) -> str:
    """The field that tells the members of a union apart."""
    return str(problem["ctx"]["discriminator"]).strip("'")


def respond(request: HTTPConnection, error: HttpError) -> Response:
    """The response, with the request's id even where no middleware can add it any more."""
    request_id = get_request_id(request.scope)
    headers = {**error.headers, REQUEST_ID_HEADER: request_id}
    shape = _get_error_shape(request)
    body = (
        ErrorBody(error=error.detail).model_dump(mode="json")
        if shape is None
        else shape(error, request_id)
    )
    return JSONResponse(body, status_code=error.status, headers=headers)


async def refuse(scope: Scope, receive: Receive, send: Send, error: CantataError) -> None:
    """Answer a request or a WebSocket's handshake from a middleware."""
    extensions: dict[str, Any] = scope.get("extensions") or {}
    if scope["type"] == "websocket" and "websocket.http.response" not in extensions:
        await send({"type": "websocket.close", "code": 1008, "reason": error.message})
        return
    await respond(HTTPConnection(scope), describe(error))(scope, receive, send)


def shape_errors(app: FastAPI, prefix: str, shape: ErrorShape) -> None:
    """Answer errors of the paths that begin with `prefix` in another protocol's format."""
    app.state.error_shapes[prefix] = shape


def _get_error_shape(request: HTTPConnection) -> ErrorShape | None:
    shapes: dict[str, ErrorShape] = request.app.state.error_shapes
    path = request.url.path
    return next((shape for prefix, shape in shapes.items() if path.startswith(prefix)), None)


def install(app: FastAPI) -> None:
    """Answer every error of an app in this way."""
    app.state.error_shapes = {}
    app.add_exception_handler(CantataError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_validation)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_error)


async def _on_error(request: Request, error: Exception) -> Response:
    described = describe(error)
    if described.status == 500:
        # Starlette also calls this after the code that knew the id has been left.
        with log_for_request(get_request_id(request.scope)):
            logger.error("request failed: %s", error)
    return respond(request, described)


async def _on_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return respond(request, describe(explain_validation(error.errors(), error.body)))


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = f"{request.method} {request.url.path}"
    message = {404: f"no such route: {what}", 405: f"method not allowed: {what}"}.get(
        error.status_code, str(error.detail)
    )
    kind = INVALID_REQUEST if error.status_code < 500 else SERVER_ERROR
    code = _CODE_OF_STATUS.get(error.status_code)
    note_error(code)
    detail = ErrorDetail(message=message, type=kind, code=code)
    return respond(request, HttpError(error.status_code, detail, dict(error.headers or {})))


def format_location(location: Sequence[int | str], sent: Any, *, missing: bool) -> str | None:
    """The way through a body to the value at fault, such as `messages[0].content[1].text`.

    Args:
        location: Pydantic's way, which has the members of unions in between, whose names the client
            did not write.
        missing: the value itself is not there.

    Returns:
        None if the whole body is at fault.
    """
    place = ""
    for step in location:
        if isinstance(sent, dict) and step in sent:
            place, sent = f"{place}.{step}", sent[step]
        elif isinstance(sent, list) and isinstance(step, int) and step < len(sent):
            place, sent = f"{place}[{step}]", sent[step]
    if missing and isinstance(sent, dict) and isinstance(location[-1], str):
        place = f"{place}.{location[-1]}"
    return place.removeprefix(".") or None


def get_field(location: Sequence[int | str]) -> str | None:
    """The name of the field at fault, found without the body. For an entry of a list: also its
    index, and the field in it."""
    # FastAPI puts the query's place in front, Pydantic the members of a union in between; the
    # client wrote neither name.
    path = [p for p in location if isinstance(p, str) and p not in ("body", "query")]
    if not path:
        return None
    after = location[location.index(path[0]) + 1 :]
    if not (after and isinstance(after[0], int)):
        return path[0]
    return ".".join((f"{path[0]}[{after[0]}]", *path[1:2]))
