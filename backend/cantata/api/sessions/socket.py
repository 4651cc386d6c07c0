"""A connection over a WebSocket: JSON from the client, JSON or sound to it."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import MutableMapping
from typing import Any, Protocol, TypeVar, get_origin

from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams
from starlette.websockets import WebSocketDisconnect

from cantata.api.context import ApiContext
from cantata.api.errors import describe, explain_validation
from cantata.api.server.drain import GoingAway
from cantata.api.sessions.connection import Connection
from cantata.contract.data.errors import CantataError, ProtocolViolation
from cantata.metrics import EndReason

logger = logging.getLogger(__name__)

Query = TypeVar("Query", bound=BaseModel)

NORMAL = 1000
"""Code of a connection that ended as it should."""
_GOING_AWAY, _POLICY, _INTERNAL, _TRY_LATER = 1001, 1008, 1011, 1013


class MessageSocket(Protocol):
    """What carries messages both ways: an accepted WebSocket, or what behaves like one."""

    async def receive(self) -> MutableMapping[str, Any]:
        """The next message, as ASGI has those of WebSockets."""
        ...

    async def send_text(self, data: str) -> None:
        """Send a message. Raises RuntimeError: the client has left."""
        ...

    async def send_bytes(self, data: bytes) -> None:
        """Send a binary message; errors as of `send_text`."""
        ...

    async def close(self, code: int = NORMAL) -> None:
        """Close; errors as of `send_text`."""
        ...


class SocketConnection(Connection):
    """One client that exchanges messages."""

    handles_after_close = False
    """Whether messages count after `close`."""

    def __init__(
        self,
        socket: MessageSocket,
        context: ApiContext,
        protocol: str,
        idle_timeout_s: float,
        *,
        first_timeout_s: float | None = None,
    ) -> None:
        super().__init__(context, protocol, idle_timeout_s, first_timeout_s=first_timeout_s)
        self._socket = socket

    @abstractmethod
    async def handle_message(self, text: str) -> None:
        """Handle one message. Raises CantataError: it is rejected; see `report_error`."""

    async def handle_binary(self, data: bytes) -> None:
        """Handle one binary message; errors as of `handle_message`."""
        raise ProtocolViolation("binary messages go from the server to the client only")

    @abstractmethod
    def report_error(self, error: CantataError) -> None:
        """Tell the client why its message is rejected."""

    async def receive_loop(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            self.touch()
            if self._closing.is_set() and not self.handles_after_close:
                continue
            try:
                text = message.get("text")
                if text is None:
                    await self.handle_binary(message["bytes"])
                else:
                    await self.handle_message(text)
                self.on_message_handled()
            except CantataError as error:
                self.report_error(error)

    async def send(self, message: BaseModel | bytes) -> None:
        """Send one message; a client that has left is noticed here too, and one that reads nothing
        counts as gone."""
        try:
            async with asyncio.timeout(self.context.settings.stall_timeout_s):
                if isinstance(message, bytes):
                    await self._socket.send_bytes(message)
                else:
                    await self._socket.send_text(message.model_dump_json(by_alias=True))
        except (WebSocketDisconnect, RuntimeError):
            # RuntimeError is Starlette's error for sending after the disconnect was read.
            self.abort()
        except TimeoutError:
            logger.info("%s stopped reading", self.name)
            self.abort(EndReason.CLIENT_STALLED)

    async def close_socket(self, code: int) -> None:
        """Close the socket, if that has not happened."""
        try:
            await self._socket.close(code)
        except (WebSocketDisconnect, RuntimeError):
            self.abort()

    async def close_gracefully(self) -> None:
        await self.close_socket(NORMAL)


def parse_query(kind: type[Query], params: QueryParams) -> Query:
    """The options in an address; unknown ones are ignored. One that is a list may be repeated.
    Raises InvalidRequest: one has a wrong value."""
    fields = kind.model_fields.items()
    lists = {name for name, field in fields if get_origin(field.annotation) is list}
    repeated = {name: params.getlist(name) for name in lists & params.keys()}
    try:
        return kind.model_validate({**params, **repeated})
    except ValidationError as error:
        raise explain_validation(error.errors(include_url=False)) from None


def close_code(error: CantataError | None) -> int:
    """The code that a connection is closed with. None: an unexpected fault."""
    if isinstance(error, GoingAway):
        return _GOING_AWAY
    status = describe(error or RuntimeError()).status
    return {500: _INTERNAL, 429: _TRY_LATER, 503: _TRY_LATER}.get(status, _POLICY)
