"""What one request or connection came to, gathered while it is served.

Whoever works for a request, in any of its tasks, notes its work here (`note_work`); outside of a
recorded request that does nothing. No text, address or key is kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class WorkRecord:
    """One run of a model. Times are of the machine's monotonic clock, in seconds."""

    kind: str
    """`speak`, `answer`, `draw`, `transcribe`."""
    model: str
    work_id: str
    """Under which the stages knew it; empty: it has none."""
    outcome: str
    """`completed`, `aborted`, `failed`."""
    reason: str | None
    """Why it ended early."""
    asked_at: float
    ended_at: float
    steps: Mapping[str, float] = field(default_factory=dict)
    """Seconds by step up to the first sound, one after the other: reading the text, admission,
    the choice of a replica, each stage until its first output left."""
    ttfp_s: float | None = None
    """Seconds to the first sound."""
    sound_s: float = 0.0
    """Seconds of sound, made or heard."""


@dataclass(slots=True)
class RequestRecord:
    request_id: str
    method: str
    """Of HTTP; `WEBSOCKET`; `BATCH`: it is a line of a batch."""
    began_at: float = field(default_factory=time.monotonic)
    began_unix_ns: int = field(default_factory=time.time_ns)
    route: str = ""
    """As the server declares it: `/v1/audio/voices/{id}`; empty: there is none."""
    status: int | None = None
    """Of HTTP; 101 once a WebSocket is open. None: the client left before there was one."""
    close_code: int | None = None
    """Of a WebSocket."""
    error: str | None = None
    """Code of the last error that the client was told of, or why a model's work ended early."""
    ended_at: float | None = None
    works: int = 0
    models: list[str] = field(default_factory=list)
    """Each once, in the order of their first work."""
    ttfp_s: float | None = None
    """Of the first work that made sound."""
    sound_s: float = 0.0
    trace_id: str | None = None
    """In hex; None: the request has no trace."""

    @property
    def duration_s(self) -> float:
        """Until the end of the answer."""
        return (self.ended_at or time.monotonic()) - self.began_at

    def add(self, work: WorkRecord) -> None:
        self.works += 1
        self.sound_s += work.sound_s
        if work.model not in self.models:
            self.models.append(work.model)
        if self.ttfp_s is None:
            self.ttfp_s = work.ttfp_s
        if work.reason is not None:
            self.error = work.reason

    def to_unix_ns(self, at_s: float) -> int:
        """A time of the monotonic clock as Unix time."""
        return self.began_unix_ns + round((at_s - self.began_at) * 1e9)


class RequestSink(Protocol):
    def begin(self, record: RequestRecord, headers: Mapping[str, str]) -> None:
        """A request has come, with these headers."""
        ...

    def worked(self, record: RequestRecord, work: WorkRecord) -> None:
        """A model's work for it has ended, and is in the record."""
        ...

    def end(self, record: RequestRecord) -> None:
        """It is over."""
        ...

    def close(self) -> None:
        """No more come. Blocks, for seconds at most."""
        ...


@dataclass(frozen=True, slots=True)
class _Recording:
    record: RequestRecord
    sinks: Sequence[RequestSink]


_recording: ContextVar[_Recording | None] = ContextVar("request_recording", default=None)


@contextmanager
def recorded(
    record: RequestRecord, sinks: Sequence[RequestSink], headers: Mapping[str, str]
) -> Iterator[None]:
    """Work that is noted inside, and in tasks that begin there, belongs to this request."""
    for sink in sinks:
        sink.begin(record, headers)
    token = _recording.set(_Recording(record, sinks))
    try:
        yield
    finally:
        _recording.reset(token)
        record.ended_at = time.monotonic()
        for sink in sinks:
            sink.end(record)


def note_work(work: WorkRecord) -> None:
    recording = _recording.get()
    if recording is not None:
        recording.record.add(work)
        for sink in recording.sinks:
            sink.worked(recording.record, work)


def note_error(code: str | None) -> None:
    """The client is told of an error."""
    recording = _recording.get()
    if recording is not None and code is not None:
        recording.record.error = code
