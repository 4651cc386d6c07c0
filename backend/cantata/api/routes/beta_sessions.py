"""/v1/realtime/sessions and /v1/realtime/transcription_sessions: client secrets, as older SDKs ask
for them.

Source: the beta of OpenAI's Realtime API, in which the body is the session.
"""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request

from cantata.api.access.security import get_key_label
from cantata.api.context import ApiContext, Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import ERRORS
from cantata.api.realtime.beta import flatten_session
from cantata.api.realtime.connection import describe_session
from cantata.api.realtime.model_choice import choose_ready_model
from cantata.api.routes.client_secrets import SecretExpiry
from cantata.api.schemas import WireModel

router = APIRouter(
    prefix="/v1/realtime", tags=["realtime"], route_class=CheckedRoute, responses=ERRORS
)


class EphemeralKeyOptions(WireModel):
    """How long a key is valid; the beta has two names for it."""

    expires_after: SecretExpiry | None = None
    expires_at: SecretExpiry | None = None

    @property
    def seconds(self) -> int:
        return (self.expires_after or self.expires_at or SecretExpiry()).seconds


class BetaSessionBody(BaseModel):
    """Asks for a key. All other fields are those of the session, today's or the beta's."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")

    client_secret: EphemeralKeyOptions | None = None


class EphemeralKey(BaseModel):
    """A client secret, which is shown only here."""

    value: str
    expires_at: int
    """Unix time in s."""


class BetaSessionObject(BaseModel):
    """The session that a key opens, in the beta's fields."""

    model_config = ConfigDict(extra="allow")

    id: str
    object: str
    client_secret: EphemeralKey


@router.post("/sessions")
async def create_session(
    request: Request, context: Context, body: BetaSessionBody | None = None
) -> BetaSessionObject:
    """Make a key for a browser or a phone, as older SDKs do. See docs/realtime.md."""
    return await _make_key(request, context, body or BetaSessionBody(), "realtime")


@router.post("/transcription_sessions")
async def create_transcription_session(
    request: Request, context: Context, body: BetaSessionBody | None = None
) -> BetaSessionObject:
    """Make a key for sessions that only transcribe, as older SDKs do. See docs/realtime.md."""
    return await _make_key(request, context, body or BetaSessionBody(), "transcription")


async def _make_key(
    request: Request,
    context: ApiContext,
    body: BetaSessionBody,
    kind: Literal["realtime", "transcription"],
) -> BetaSessionObject:
    """A key, and the session that it opens.

    Raises:
        InvalidRequest: a setting is not valid, or needs what is not installed.
        CantataError: as of `choose_ready_model` and `ClientSecrets.issue`.
    """
    session = {**(body.model_extra or {}), "type": kind}
    choice = await choose_ready_model(context, None, None, session)
    shown = flatten_session(await describe_session(context, choice, session))
    seconds = (body.client_secret or EphemeralKeyOptions()).seconds
    value, secret = context.client_secrets.issue(get_key_label(request.scope), session, seconds)
    key = EphemeralKey(value=value, expires_at=int(secret.expires_at))
    return BetaSessionObject(**{**shown, "client_secret": key})
