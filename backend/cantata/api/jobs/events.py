"""A job's steps as server-sent events, from where a client has left off."""

from __future__ import annotations

import asyncio

from cantata.api.context import ApiContext
from cantata.api.http.streamed_response import Body, StreamedResponse
from cantata.api.speech.framing import SSE_MEDIA_TYPE
from cantata.contract.data.errors import InvalidRequest, JobNotFound
from cantata.jobs.store import JobStore

JOB_EVENTS = [
    f"job.{kind}"
    for kind in ("queued", "speaking", "progress", "writing", "completed", "failed", "cancelled")
]
_KEEP_ALIVE_S = 15.0
_MAX_EVENTS = 1_000


def read_last_id(sent: str | None) -> int:
    """The header `Last-Event-ID`; 0: there was none. Raises InvalidRequest: it is no number."""
    if not sent:
        return 0
    if not (sent.isascii() and sent.isdigit() and len(sent) < 16):
        raise InvalidRequest(f"Last-Event-ID is {sent[:40]!r}; send an event's id", "last-event-id")
    return int(sent)


class JobEventStream(StreamedResponse):
    """Everything that has happened since an event, and then what happens, to the job's end."""

    def __init__(self, context: ApiContext, store: JobStore, id: str, after: int) -> None:
        super().__init__(SSE_MEDIA_TYPE, {}, context.settings.stall_timeout_s)
        self._store, self._id, self._after = store, id, after
        self._drain = context.drain
        self._leaving = asyncio.Event()

    async def stream(self, request_id: str, body: Body) -> None:
        """Write events; a server that stops ends the stream, and the client asks the next one."""
        await body.write(b"")
        with self._drain.subscribed(self._leaving.set):
            while not self._leaving.is_set():
                seen = self._store.changes
                events = await self._store.list_events(self._id, self._after, _MAX_EVENTS)
                for event in events:
                    await body.write(f"id: {event.id}\ndata: {event.data}\n\n".encode())
                    self._after = event.id
                if len(events) < _MAX_EVENTS and await self._is_over():
                    break
                if not events and not await self._wait(seen):
                    await body.write(b": still here\n\n")
        await body.end()

    async def _is_over(self) -> bool:
        try:
            job = await self._store.find(self._id)
        except JobNotFound:
            return True
        # What came between the two looks is written in the next round.
        return job.status.is_final and not await self._store.list_events(self._id, self._after, 1)

    async def _wait(self, seen: int) -> bool:
        """Wait for a change; False: none has come for some time."""
        waits = [
            asyncio.ensure_future(self._store.wait(seen)),
            asyncio.ensure_future(self._leaving.wait()),
        ]
        try:
            done, _ = await asyncio.wait(
                waits, timeout=_KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for one in waits:
                one.cancel()
            await asyncio.wait(waits)
        return bool(done)
