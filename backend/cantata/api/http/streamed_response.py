"""HTTP bodies that are sent while they are made."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Coroutine, Mapping

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from cantata.api.http.request_id import arrived_at, get_request_id
from cantata.contract.data.errors import get_first_error


async def run_until_disconnect(
    receive: Receive, work: Coroutine[None, None, None], name: str
) -> None:
    """Run `work`; a disconnect cancels it and waits until it has cleaned up.

    The request's body must have been read. Errors of `work` are raised as they are.
    """
    try:
        async with asyncio.TaskGroup() as group:
            working = group.create_task(work, name=name)
            watching = group.create_task(_cancel_on_disconnect(receive, working), name=f"{name}:rx")
            working.add_done_callback(lambda _: watching.cancel())
    except BaseExceptionGroup as errors:
        raise get_first_error(errors) from None


async def _cancel_on_disconnect(receive: Receive, working: asyncio.Task[None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    working.cancel()


CUT = "cantata.cut"
"""In a request's scope, where the server can do that: closes the connection in mid-body."""
_PART_BYTES = 64 << 10


class ClientStalled(ConnectionError):
    """The client keeps its connection open but reads nothing."""


class Body:
    """A response being sent. The head goes out with the first write: until then, a failure is still
    a proper HTTP error.

    `write` and `end` raise `ClientStalled` for a client that stops reading.

    Args:
        asked_at: when the request arrived, by the monotonic clock.
    """

    def __init__(self, send: Send, head: Message, stall_timeout_s: float, asked_at: float) -> None:
        self.asked_at = asked_at
        self._send = send
        self._head = head
        self._stall_timeout_s = stall_timeout_s
        self.started = False
        self.ended = False

    def add_header(self, name: str, value: str) -> None:
        """Add a header; before the first write."""
        assert not self.started, "the head has been sent"
        MutableHeaders(raw=self._head["headers"]).append(name, value)

    async def write(self, data: bytes) -> None:
        """Send more; without data, only the head."""
        await self._start()
        if data:
            await self._send_in_time(data, more=True)

    async def write_in_parts(self, data: bytes) -> None:
        """Send something long: a slow client reads some of it in time, if not all of it."""
        for start in range(0, len(data), _PART_BYTES):
            await self.write(data[start : start + _PART_BYTES])

    async def end(self, data: bytes = b"") -> None:
        """Send the rest. HTTP clients report a body without its end as incomplete."""
        self.ended = True
        await self._start()
        await self._send_in_time(data, more=False)

    async def _start(self) -> None:
        if not self.started:
            self.started = True
            await self._send(self._head)

    async def _send_in_time(self, data: bytes, *, more: bool) -> None:
        try:
            async with asyncio.timeout(self._stall_timeout_s):
                await self._send({"type": "http.response.body", "body": data, "more_body": more})
        except TimeoutError as error:
            raise ClientStalled from error


class StreamedResponse(Response):
    """A response whose body `stream` writes; a disconnect cancels that and awaits it."""

    def __init__(self, media_type: str, headers: Mapping[str, str], stall_timeout_s: float) -> None:
        # Reverse proxies must not buffer the stream.
        unbuffered = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(media_type=media_type, headers={**headers, **unbuffered})
        # The length of a stream is not known; without this header the server sends chunks.
        del self.headers["content-length"]
        self._stall_timeout_s = stall_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = get_request_id(scope)
        head = {"type": "http.response.start", "status": 200, "headers": list(self.raw_headers)}
        body = Body(send, head, self._stall_timeout_s, arrived_at(scope))
        await run_until_disconnect(receive, self.stream(request_id, body), f"speech:{request_id}")
        if body.started and not body.ended and CUT in scope:
            scope[CUT]()

    @abstractmethod
    async def stream(self, request_id: str, body: Body) -> None:
        """Write the body and end it. Errors raised before the first write become HTTP errors.
        `body`: takes the bytes."""
