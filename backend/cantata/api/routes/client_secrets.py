"""/v1/realtime/client_secrets: keys with which browsers open sessions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.requests import Request

from cantata.api.access.security import get_key_label
from cantata.api.context import Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import ERRORS
from cantata.api.realtime.connection import describe_session
from cantata.api.realtime.model_choice import choose_ready_model
from cantata.api.schemas import WireModel

router = APIRouter(
    prefix="/v1/realtime/client_secrets",
    tags=["realtime"],
    route_class=CheckedRoute,
    responses=ERRORS,
)


class SecretExpiry(WireModel):
    """When a secret expires. Sessions that are open then go on."""

    anchor: Literal["created_at"] = "created_at"
    seconds: Annotated[int, Field(ge=10, le=7200)] = 600


class ClientSecretBody(WireModel):
    """Asks for a secret."""

    expires_after: SecretExpiry = SecretExpiry()
    session: dict[str, Any] = Field(default_factory=lambda: {"type": "realtime"})
    """Settings of the sessions that it opens, as of `session.update`; `model` chooses theirs."""


class ClientSecretObject(BaseModel):
    """A secret, which is shown only here."""

    value: str
    expires_at: int
    """Unix time in s."""
    session: dict[str, Any]
    """As a session that it opens begins."""


@router.post("")
async def create_client_secret(
    request: Request, context: Context, body: ClientSecretBody | None = None
) -> ClientSecretObject:
    """Make a key for a browser or a phone. See docs/realtime.md."""
    body = body or ClientSecretBody()
    choice = await choose_ready_model(context, None, None, body.session)
    session = await describe_session(context, choice, body.session)
    owner = get_key_label(request.scope)
    value, secret = context.client_secrets.issue(owner, body.session, body.expires_after.seconds)
    return ClientSecretObject(value=value, expires_at=int(secret.expires_at), session=session)
