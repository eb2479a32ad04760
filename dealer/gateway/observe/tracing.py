"""OpenTelemetry spans of requests, commits and slices of the projection (the extra `otel`).

A span is made when its work has ended, from the time that the metrics measure anyway: without
tracing nothing is imported, and the way of a request has one comparison more. Spans have no parent.
Their attributes are those of OpenTelemetry's conventions for JSON-RPC, with names of methods and
outcomes as values: no table, player, card, token or other text of a client.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dealer.errors import REFUSALS, ConfigurationError
from dealer.gateway.observe.metrics import Metrics
from dealer.gateway.wire.protocol import ErrorCode
from dealer.service import Service
from dealer.service.clock import utc_ns
from dealer.version import running_version

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

COMMIT = "eventlog.commit"
SLICE = "projector.slice"
_CALL = {"rpc.system.name": "jsonrpc", "jsonrpc.protocol.version": "2.0"}


@contextmanager
def tracing(collector: str | None, service: Service, metrics: Metrics) -> Iterator[None]:
    """Send spans to the OTLP collector at this URL while the block runs; none without a URL.

    Raises ConfigurationError if the packages of the extra are missing.
    """
    if not collector:
        yield
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise ConfigurationError(
            "--otlp-traces needs further packages: pip install '.[otel]' in the source folder."
        ) from None
    resource = Resource.create({"service.name": "dealer", "service.version": running_version()})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    # Exports in a thread of its own; spans that a slow collector does not take are dropped.
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=collector)))
    try:
        with recording(provider, service, metrics):
            yield
    finally:
        provider.shutdown()


@contextmanager
def recording(provider: TracerProvider, service: Service, metrics: Metrics) -> Iterator[None]:
    """Make spans with this provider while the block runs."""
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanKind, Status, StatusCode

    tracer = provider.get_tracer("dealer", running_version())

    def record(
        name: str, kind: SpanKind, seconds: float, attributes: dict[str, str] | None = None
    ) -> None:
        end = utc_ns()
        span = tracer.start_span(
            name,
            context=Context(),
            kind=kind,
            attributes=attributes,
            start_time=end - int(seconds * 1e9),
        )
        if attributes and "error.type" in attributes:
            span.set_status(Status(StatusCode.ERROR))
        span.end(end)

    def on_answer(method: str, outcome: str, seconds: float) -> None:
        attributes = _CALL | {"rpc.method": method}
        if outcome != "ok":
            refusal = REFUSALS.get(outcome)
            code = ErrorCode.INTERNAL_ERROR if refusal is None else refusal.code
            attributes |= {"error.type": outcome, "rpc.response.status_code": str(int(code))}
        record(method, SpanKind.SERVER, seconds, attributes)

    commits = service.log.writer.commit_seconds
    slices = service.projection.slice_seconds
    metrics.on_answer = on_answer
    commits.listener = lambda seconds: record(COMMIT, SpanKind.CLIENT, seconds)
    slices.listener = lambda seconds: record(SLICE, SpanKind.INTERNAL, seconds)
    try:
        yield
    finally:
        metrics.on_answer = commits.listener = slices.listener = None
