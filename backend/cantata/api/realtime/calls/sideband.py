"""A call's sideband: a WebSocket on which a program sees a caller's session, and takes part in it.

The browser talks; tools and instructions stay on the program's side. Source: OpenAI's "Webhooks and
server-side controls" of the Realtime API.
"""

from __future__ import annotations

from collections.abc import Sequence

from cantata.api.context import ApiContext
from cantata.api.realtime.calls.open_calls import OpenCall
from cantata.api.realtime.connection import find_event_id, make_error_event, parse_event
from cantata.api.realtime.server_events import ServerEvent, SessionEvent
from cantata.api.sessions.connection import Channel
from cantata.api.sessions.socket import NORMAL, MessageSocket, SocketConnection, close_code
from cantata.api.speech.outbox import Item, OutboxFull
from cantata.contract.data.errors import CantataError, Overloaded
from cantata.metrics import EndReason

MAX_SIDEBANDS = 8
"""Of one call."""


def check_room(call: OpenCall) -> None:
    """Raises `Overloaded` if a call has all the sidebands that it may."""
    if len(call.sidebands) >= MAX_SIDEBANDS:
        raise Overloaded(f"this call has {MAX_SIDEBANDS} sidebands, the most that it may have")


class Sideband(SocketConnection):
    """Another client of a call's session, over an accepted WebSocket. Events go to the caller and
    to every sideband; refusals to whom they concern. The call outlives it."""

    def __init__(self, socket: MessageSocket, context: ApiContext, call: OpenCall) -> None:
        super().__init__(socket, context, "sideband", context.settings.realtime.max_session_s)
        self._call = call
        self._events = _EventChannel(self)

    def begin(self) -> None:
        self.context.calls.find(self._call.id)  # it may have ended during the handshake
        self.open(self._events)
        self.notify([SessionEvent(type="session.created", session=self._call.describe())])
        self._call.sidebands.add(self)

    async def handle_message(self, text: str) -> None:
        event_id = None
        try:
            event = await parse_event(text)
            event_id = event.event_id
            await self._call.handle_event(event)
        except CantataError as error:
            self.notify([make_error_event(error, event_id or find_event_id(text))])

    def notify(self, events: Sequence[ServerEvent]) -> None:
        """Send events, without waiting. A program that reads none has left."""
        try:
            for event in events:
                self._events.outbox.post(event)
        except OutboxFull:
            self.abort(EndReason.CLIENT_STALLED)

    def report_error(self, error: CantataError) -> None:
        self.notify([make_error_event(error, None)])

    def close(self) -> None:
        self._call.sidebands.discard(self)
        super().close()

    def stop(self, reason: EndReason = EndReason.CLIENT_LEFT) -> None:
        self._call.sidebands.discard(self)
        super().stop(reason)

    async def close_with_error(self, error: CantataError | None) -> None:
        await self.send(make_error_event(error or RuntimeError(), None))
        await self.close_socket(NORMAL if error is None else close_code(error))


class _EventChannel(Channel):
    """Events in order; nothing is spoken."""

    def __init__(self, sideband: Sideband) -> None:
        super().__init__(sideband)
        self._sideband = sideband

    async def write(self, item: Item) -> None:
        assert isinstance(item, ServerEvent)
        await self._sideband.send(item)
