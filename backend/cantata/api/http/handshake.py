"""WebSocket handshakes that cannot succeed are answered as plain HTTP requests."""

from __future__ import annotations

from typing import cast

from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from cantata.api.context import ApiContext
from cantata.api.http.overload import note_rejection


class PlainHandshake(H11Protocol):
    """Stays with HTTP if the app would reject the session at once: switching protocols and parsing
    the head again takes longer than the response itself."""

    def _should_upgrade(self) -> bool:
        if not super()._should_upgrade():
            return False
        context: ApiContext = self.config.app.state.context  # type: ignore[union-attr]
        return not note_rejection(cast(Scope, self.scope), context.service)
