"""Requests as OpenTelemetry's traces, sent by OTLP over HTTP.

One process makes the whole trace. Every stage, on whichever machine, stamps its first chunk with
the time (`contract.data.chunks.Milestone`), and the stamps of all of them arrive with the first
sound; so stages and replicas need no exporter, and nothing more crosses between them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from cantata.contract.data.errors import NotInstalled
from cantata.telemetry.request_record import RequestRecord, WorkRecord

try:
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as missing:
    raise NotInstalled(f"traces need {missing.name}: pip install 'cantata[otel]'") from missing

STREAM = "stream"
"""Name of the span from the first sound to the end."""
_FLUSH_MS = 3000


class TraceSink:
    """Implements `RequestSink`: a span for each request, spans of models' work inside it, and in
    those a span for each step. `exporter`: sends them."""

    def __init__(self, exporter: SpanExporter, version: str) -> None:
        own = {SERVICE_VERSION: version}
        if "OTEL_SERVICE_NAME" not in os.environ:
            own[SERVICE_NAME] = "cantata"
        self._provider = TracerProvider(resource=Resource.create(own), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("cantata", version)
        self._propagator = TraceContextTextMapPropagator()
        self._spans: dict[int, Span] = {}
        """Of the open requests, by their records: several may have the id that clients chose."""

    def begin(self, record: RequestRecord, headers: Mapping[str, str]) -> None:
        """Begin its span, inside the one that `traceparent` names."""
        span = self._tracer.start_span(
            record.method,
            context=self._propagator.extract(headers),
            kind=SpanKind.SERVER,
            start_time=record.began_unix_ns,
        )
        self._spans[_find_key(record)] = span
        if span.is_recording():
            record.trace_id = trace.format_trace_id(span.get_span_context().trace_id)

    def worked(self, record: RequestRecord, work: WorkRecord) -> None:
        around = self._spans.get(_find_key(record))
        if around is None or not around.is_recording():
            return
        outer = trace.set_span_in_context(around)
        began, ended = map(record.to_unix_ns, (work.asked_at, work.ended_at))
        attributes: dict[str, str | float] = {
            "cantata.model": work.model,
            "cantata.work_id": work.work_id,
            "cantata.outcome": work.outcome,
            "cantata.sound_s": work.sound_s,
        }
        if work.ttfp_s is not None:
            attributes["cantata.ttfp_s"] = work.ttfp_s
        span = self._tracer.start_span(
            f"{work.kind} {work.model}", outer, attributes=attributes, start_time=began
        )
        if work.reason is not None:
            span.set_attribute("error.type", work.reason)
        if work.outcome == "failed":
            span.set_status(Status(StatusCode.ERROR))
        inner = trace.set_span_in_context(span)
        at_s = work.asked_at
        for step, seconds in (*work.steps.items(), (STREAM, None)):
            if not work.steps:
                break
            started, at_s = at_s, work.ended_at if seconds is None else at_s + seconds
            made = self._tracer.start_span(step, inner, start_time=record.to_unix_ns(started))
            made.end(record.to_unix_ns(at_s))
        span.end(ended)

    def end(self, record: RequestRecord) -> None:
        span = self._spans.pop(_find_key(record))
        span.update_name(f"{record.method} {record.route}".rstrip())
        attributes: dict[str, str | int] = {
            "http.request.method": "GET" if record.method == "WEBSOCKET" else record.method,
            "cantata.request_id": record.request_id,
        }
        if record.route:
            attributes["http.route"] = record.route
        if record.status is not None:
            attributes["http.response.status_code"] = record.status
        if record.error is not None:
            attributes["error.type"] = record.error
        span.set_attributes(attributes)
        if record.status is not None and record.status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        assert record.ended_at is not None
        span.end(record.to_unix_ns(record.ended_at))

    def close(self) -> None:
        """Send what waits, if somebody takes it."""
        self._provider.force_flush(_FLUSH_MS)
        self._provider.shutdown()


def open_trace_sink(endpoint: str, version: str) -> TraceSink:
    """Sends traces to the address of a collector, such as `http://localhost:4318/v1/traces`. The
    SDK's variables (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, ...) say the rest."""
    return TraceSink(OTLPSpanExporter(endpoint=endpoint), version)


def _find_key(record: RequestRecord) -> int:
    return id(record)
