"""Records what each request comes to, for those who keep such records (`cantata.telemetry`)."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cantata import __version__
from cantata.api.http.request_id import arrived_at, get_request_id
from cantata.api.settings import ServerSettings
from cantata.telemetry.request_log import RequestLog
from cantata.telemetry.request_record import RequestRecord, RequestSink, recorded

SWITCHING_PROTOCOLS = 101


def open_sinks(settings: ServerSettings) -> tuple[RequestSink, ...]:
    """Who takes the records of requests, as the settings say.

    Raises:
        ConfigError: the log cannot be written.
        NotInstalled: what makes traces is missing.
    """
    sinks: list[RequestSink] = []
    if settings.otlp_traces_endpoint is not None:
        # Optional, and slow to import.
        from cantata.telemetry.traces import open_trace_sink

        sinks.append(open_trace_sink(settings.otlp_traces_endpoint, __version__))
    if settings.request_log is not None:
        # After the trace, whose id it writes.
        sinks.append(RequestLog(settings.request_log))
    return tuple(sinks)


class RecordingMiddleware:
    """Plain ASGI, so streams are not buffered."""

    def __init__(self, app: ASGIApp, sinks: Sequence[RequestSink]) -> None:
        self._app, self._sinks = app, sinks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["type"] == "http" else "WEBSOCKET"
        record = RequestRecord(get_request_id(scope), method, arrived_at(scope))

        async def observed(message: Message) -> None:
            match message["type"]:
                case "http.response.start" | "websocket.http.response.start":
                    record.status = message["status"]
                case "websocket.accept":
                    record.status = SWITCHING_PROTOCOLS
                case "websocket.close":
                    record.close_code = message.get("code", 1000)
            await send(message)

        async def observing() -> Message:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                record.close_code = message.get("code", 1005)
            return message

        with recorded(record, self._sinks, Headers(scope=scope)):
            try:
                await self._app(scope, observing, observed)
            except Exception:
                record.status, record.error = 500, "internal_error"
                raise
            finally:
                # Known once the router has found it.
                record.route = getattr(scope.get("route"), "path", "")
